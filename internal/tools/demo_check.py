"""Reads what `dlwb demo --json` printed and holds it against what it promises:
every line one object with "event", each step with its duration, a loss that
falls by at least a quarter, exit code 0, nothing left."""
import json
import sys

events = [json.loads(line) for line in open(sys.argv[1])]
assert all("event" in e for e in events), "a line without event"
by = {}
for e in events:
    by.setdefault(e["event"], []).append(e)
steps = {e["step"]: e["duration_s"] for e in by["step_ended"]}
assert list(steps) == ["cluster", "environment", "sync", "launch", "train", "fetch", "down"], steps
loss = [(p["step"], p["value"]) for p in by["point"] if p["name"] == "loss"]
assert len(loss) > 20 and loss == sorted(loss, key=lambda p: p[0]), "the points of the loss are not in order"
assert loss[0][1] >= 1.3 * loss[-1][1], (loss[0], loss[-1])
(end,) = by["run_ended"]
assert end["exit_code"] == 0 and end["verdict"] == "succeeded", end
(receipt,) = by["receipt"]
assert receipt["proven"] and receipt["processes_left"] == 0 and receipt["files_left"] == 0, receipt
(started,) = by["run_started"]
print(f"demo: {started['engine']}, world size {started['world_size']}, loss {loss[0][1]} -> {loss[-1][1]} in {len(loss)} points; "
      + ", ".join(f"{k} {v:.1f} s" for k, v in steps.items()))
