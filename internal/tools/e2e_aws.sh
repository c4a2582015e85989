#!/bin/sh
# The whole life of a cluster on the real EC2, for somebody with an account: two
# of the cheapest machines, a run of a minute, results, teardown, receipt, and a
# look for leftovers in every region. It costs a few cents; the machines
# themselves would end it at 1 US dollar or after half an hour, whatever
# becomes of this script.
#
#   make e2e-aws REGION=us-east-1 [S3=s3://bucket/prefix] [PROFILE_MORE='subnet: lab']
#
# With S3 the results go there too. PROFILE_MORE is a line below machines, for
# accounts without a default VPC. What held is printed line by line; the first
# thing that does not hold ends it with another exit code than 0.
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
  ${PROFILE_MORE:-}
environment: system
run: {engine: plain, command: train.py}
results: {paths: [out/]${S3:+, s3: "$S3"}}
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
held() { echo "e2e-aws: held: $*"; }
broken() {
    echo "e2e-aws: DID NOT HOLD: $*" >&2
    exit 1
}
grep '"event":"run_ended"' events.jsonl | grep -q '"verdict":"succeeded"' || broken "the run ended well: $(grep '"event":"run_ended"' events.jsonl)"
held "two machines trained together, and the run ended well"
home=$(sed -n 's/.*"event":"results".*"dir":"\([^"]*\)".*/\1/p; s/.*"dir":"\([^"]*\)".*"event":"results".*/\1/p' events.jsonl | tail -n 1)
[ "$(cat "$home/out/rank-0" 2>/dev/null)" = 2 ] || broken "the results are home, in $home"
held "its results are home"
if [ -n "${S3:-}" ]; then
    grep -q "the results are in $S3/" events.jsonl || broken "the results are in $S3: $(grep -o 'the results are not in [^"]*' events.jsonl | head -n 1)"
    held "and in $S3"
fi
grep '"event":"receipt"' events.jsonl | grep -q '"proven":true' || broken "all is proven gone: $(grep '"event":"receipt"' events.jsonl)"
held "everything is proven gone"
"$dlwb" gc --plain >gc.txt || broken "nothing is left in any region: $(cat gc.txt)"
held "nothing is left in any region that could be seen"
sed 's/^/e2e-aws: gc: /' gc.txt
