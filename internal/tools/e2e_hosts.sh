#!/bin/sh
# The whole life of a cluster on machines of your own: plan, environment, code, a short
# run, logs, results, a run that fails, down, and a look whether anything is left. It
# writes to ~/dlwb/e2ehosts and ~/.dlwb there and removes both again.
#
#   make e2e-hosts HOSTS="gpu1 gpu2 ada@gpu3:2222"
set -eu
: "${HOSTS:?name your machines: make e2e-hosts HOSTS=\"gpu1 gpu2\"}"
dlwb=$(pwd)/bin/dlwb
work=$(mktemp -d)
DLWB_HOME=$work/state
export DLWB_HOME

held=0
holds() { held=$((held + 1)) && echo "e2e-hosts: holds: $1"; }
broken() {
    echo "e2e-hosts: DOES NOT HOLD: $1" >&2
    exit 1
}

# Whatever happens, the machines are given back. What can't be proven keeps its record.
leave() {
    code=$?
    trap - EXIT INT TERM
    cd "$work"
    if "$dlwb" ls --json 2>/dev/null | grep -q '"name":"e2ehosts"'; then
        "$dlwb" down e2ehosts --plain || {
            echo "e2e-hosts: UNRESOLVED; the record is in $work/state (DLWB_HOME): dlwb down e2ehosts tries again" >&2
            exit 3
        }
    fi
    [ "$code" = 0 ] || echo "e2e-hosts: $held points held before" >&2
    rm -rf "$work"
    exit "$code"
}
trap leave EXIT
trap 'exit 130' INT TERM

trusted() {
    hash=$("$dlwb" trust --json | sed -n 's/.*"key":"\([0-9a-f]*\)".*/\1/p') || true
    "$dlwb" trust --hash "$hash" >/dev/null
}

cd "$work"
count=0 list=
for host in $HOSTS; do
    count=$((count + 1))
    list="$list, \"$host\""
done
cat >train.py <<'PY'
import os, socket, sys, time
rank = os.environ["RANK"]
print("rank", rank, "on", socket.gethostname(), "of", os.environ["WORLD_SIZE"], flush=True)
for step in range(1, 11):
    print(f"step {step} loss {4 / step:.4f}", flush=True)
    time.sleep(0.2)
if "--fail" in sys.argv and rank == "0":
    sys.exit(7)
if "--fail" in sys.argv:
    time.sleep(600)
open(os.path.join(os.environ["DLWB_RESULTS"], "rank-" + rank), "w").write(rank)
PY
profile() {
    cat >dlwb.yaml <<YAML
name: e2ehosts
provider: hosts
machines: {hosts: [${list#, }]}
environment: system
run: {engine: plain, procs_per_node: 1, command: train.py$1}
YAML
    trusted
}

profile ""
"$dlwb" plan || broken "the plan: see above"
holds "all $count machines can be used"
"$dlwb" run --json >events.jsonl || { tail -n 5 events.jsonl && broken "a short run"; }
holds "a run of $count ranks"
run=$(sed -n 's/.*"event":"run_started".*"run":"\([^"]*\)".*/\1/p; s/.*"run":"\([^"]*\)".*"event":"run_started".*/\1/p' events.jsonl | head -n 1)
rank=0
while [ "$rank" -lt "$count" ]; do
    grep -q "rank $rank on " "$DLWB_HOME/runs/$run/rank-$rank.log" || broken "the log of rank $rank is home"
    [ "$(cat "$DLWB_HOME/runs/$run/results/node$rank/rank-$rank" 2>/dev/null)" = "$rank" ] || broken "the result of rank $rank is home"
    rank=$((rank + 1))
done
holds "logs and results of every rank are home"
for host in $HOSTS; do
    grep -q "\"host\":\"$host\"" events.jsonl || broken "events name $host"
done
holds "events name each machine as you do"
"$dlwb" run --json >again.jsonl || broken "a second run"
holds "a second run on the same cluster"
profile " --fail"
code=0
"$dlwb" run --json >fails.jsonl || code=$?
[ "$code" = 7 ] || broken "a run whose rank 0 ends with 7 ends with 7, not $code"
grep '"event":"run_ended"' fails.jsonl | grep -q 'rank 0' || broken "the verdict names rank 0"
holds "a rank that fails ends the others, and its code comes back"
"$dlwb" down e2ehosts --json >down.jsonl || { tail -n 5 down.jsonl && broken "down"; }
grep -q '"proven":true' down.jsonl || broken "down proves that nothing is left"
holds "down, with the proof that nothing is left"
echo "e2e-hosts: all $held points held on $count machines"
