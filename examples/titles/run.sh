#!/usr/bin/env bash
# A million product titles to Parquet, interrupted by kill -9. This regenerates the recorded output:
#
#   bash examples/titles/run.sh > examples/titles/output.txt
#
# TITLES, KILL_AT (parts that are written when the run is killed) and CHUNK (options of annotate) change the size.
set -euo pipefail
. "$(dirname "$0")/../steps.sh"
annotate="hanlattice annotate work/titles.csv work/titles.parquet --model lite --column title --lexicon brands.tsv --workers 2${CHUNK:+ $CHUNK}"

step "python generate.py work/titles.csv --titles ${TITLES:-1000000}"
step "python measure.py --kill-at ${KILL_AT:-200} --output work/titles.parquet $annotate"
step "python measure.py $annotate"
for library in pandas polars; do
  if python -c "import $library" 2> /dev/null; then
    step "python read.py work/titles.parquet --with $library"
  fi
done
