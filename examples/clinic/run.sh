#!/usr/bin/env bash
# A clinic's dictionary and 200 annotated sentences to a running service. This regenerates the recorded output:
#
#   bash examples/clinic/run.sh > examples/clinic/output.txt
#
# SENTENCES, TRAINING (further options of train) and PORT change the size and the port.
set -euo pipefail
. "$(dirname "$0")/../steps.sh"
url=http://127.0.0.1:${PORT:-8000}
map=疾病=DISEASE,症状=SYMPTOM,药品=DRUG,检查=EXAM

step "python generate.py work --sentences ${SENTENCES:-200}"
step "hanlattice check work/annotated.jsonl work/test.jsonl"
step "hanlattice train --start default --train work/annotated.jsonl --map $map --lexicon dictionary.tsv --output work/model${TRAINING:+ $TRAINING}"
step "hanlattice evaluate work/test.jsonl --model work/model --map $map"

echo "\$ hanlattice serve --model work/model --lexicons work/lexicons --port ${PORT:-8000} &"
hanlattice serve --model work/model --lexicons work/lexicons --port "${PORT:-8000}" > work/serve.log 2>&1 &
service=$!
trap 'kill $service 2> /dev/null || true' EXIT
until curl --silent --fail --output work/ready "$url/readyz"; do
  kill -0 $service  # stops here if the service ended
  sleep 0.2
done
echo

json='-H "Content-Type: application/json"'
step "curl --silent $url/v1/entities $json -d '{\"text\": \"头晕两天，家里的7号贴用完了，复查动态血压\"}'"
step "curl --silent -X PUT $url/v1/lexicons/clinic $json -d '{\"words\": [{\"text\": \"7号贴\", \"label\": \"DRUG\"}]}'"
step "curl --silent $url/v1/entities $json -d '{\"text\": \"头晕两天，家里的7号贴用完了，复查动态血压\", \"lexicon\": \"clinic\"}'"
