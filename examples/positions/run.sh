#!/usr/bin/env bash
# Three position encodings of FLAT compared, with a test of significance. This regenerates the recorded output:
#
#   bash examples/positions/run.sh > examples/positions/output.txt
#
# SENTENCES, SEEDS and TRAINING (dotted options of compare) change the size.
set -euo pipefail
. "$(dirname "$0")/../steps.sh"
seeds=${SEEDS:-1,2,3}

step "python generate.py work --sentences ${SENTENCES:-400}"
step "hanlattice compare four.toml ends.toml heads.toml --output work/compare --seeds $seeds --no-speed --format md --quiet${TRAINING:+ $TRAINING}"
text=$(head -1 work/test.txt | sed 's/[][]//g; s/{[A-Z]*}//g')
step "hanlattice explain $text --model work/compare/four/${seeds%%,*} --output explain.svg"
