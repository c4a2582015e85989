#!/bin/sh
# The whole life of a cluster on the real EC2, for somebody with an account: two
# of the cheapest machines, a run of a minute, results, teardown, receipt, and a
# look for leftovers in every region. It costs a few cents; the machines
# themselves would end it at 1 US dollar or after half an hour, whatever
# becomes of this script.
#
#   make e2e-aws REGION=us-east-1
set -eu
region=${REGION:-${AWS_REGION:-us-east-1}}
dlwb=$(pwd)/bin/dlwb
work=$(mktemp -d)
DLWB_HOME=$work/state
export DLWB_HOME

# Whatever happens, the machines go. What can't be proven gone keeps its record.
leave() {
    code=$?
    trap - EXIT INT TERM
    cd "$work"
    if [ -f dlwb.yaml ] && "$dlwb" ls --json 2>/dev/null | grep -q '"name":"e2e"'; then
        "$dlwb" down e2e --plain || {
            echo "e2e-aws: UNRESOLVED; the record is in $work/state (DLWB_HOME), and dlwb gc looks everywhere" >&2
            exit 3
        }
    fi
    rm -rf "$work"
    exit "$code"
}
trap leave EXIT
trap 'exit 130' INT TERM

cd "$work"
cat >train.py <<'PY'
import os, time
rank = os.environ["RANK"]
os.makedirs("out", exist_ok=True)
for step in range(1, 31):
    print(f"step {step} loss {4 / step:.4f}", flush=True)
    time.sleep(0.5)
open(f"out/rank-{rank}", "w").write(os.environ["WORLD_SIZE"])
PY
cat >dlwb.yaml <<YAML
name: e2e
provider: ec2
machines:
  region: $region
  instance: t3.micro
  count: 2
  image: resolve:ssm:/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id
  disk: 12GB
environment: system
run: {engine: plain, command: train.py}
results: {paths: [out/]}
limits: {budget: 1USD, lifetime: 30m, idle: 10m}
YAML

# Trusted as it was written just now, by its hash.
hash=$("$dlwb" trust --json | sed -n 's/.*"key":"\([0-9a-f]*\)".*/\1/p') || true
"$dlwb" trust --hash "$hash"
echo "e2e-aws: the plan"
"$dlwb" plan
if [ "${YES:-}" != 1 ]; then
    printf 'e2e-aws: this starts two t3.micro in %s and costs a few cents. Go on? [y/N] ' "$region"
    read -r answer
    [ "$answer" = y ] || exit 1
fi
"$dlwb" run --down --json >events.jsonl || {
    code=$?
    tail -n 5 events.jsonl
    exit "$code"
}
grep '"event":"run_ended"' events.jsonl
grep '"event":"receipt"' events.jsonl
grep '"event":"receipt"' events.jsonl | grep -q '"proven":true'
echo "e2e-aws: what is left, in every region"
"$dlwb" gc --plain
echo "e2e-aws: done"
