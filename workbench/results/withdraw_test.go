package results

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/workbench/event"
)

// A checkpoint that turns out to be in doubt is taken back from S3, also one that is
// still on its way; what was whole before stays, and a run goes on from that.
func TestACheckpointInDoubtIsTakenBackFromS3(t *testing.T) {
	f, b, s := bucketed(t)
	for serial := 1; serial <= 3; serial++ {
		lieHome(t, f, serial, "weights")
	}
	away := f.sendAway(s.at, "train-1")
	away.send(ckpt(1))
	for sets := []string(nil); len(sets) == 0; {
		var err error
		if sets, err = b.Sets(t.Context(), "train/1f0c/train-1/checkpoints/node0"); err != nil {
			t.Fatal(err)
		}
	}
	away.send(ckpt(2))
	away.withdraw([]savedCkpt{ckpt(2)}) // it may be waiting, under way or there
	away.send(ckpt(3))
	away.finish(t.Context())
	sets, err := b.Sets(t.Context(), "train/1f0c/train-1/checkpoints/node0")
	if err != nil || strings.Join(sets, " ") != "train/1f0c/train-1/checkpoints/node0/000001 train/1f0c/train-1/checkpoints/node0/000003" {
		t.Errorf("%v %q", err, sets)
	}

	away = f.sendAway(s.at, "train-1")
	away.withdraw([]savedCkpt{ckpt(3)})
	away.finish(t.Context())
	r, err := f.loadCkpts(t.Context(), s.run)
	if err != nil || len(r.Saved) != 1 || r.Saved[0].Name != "step-1" {
		t.Errorf("%v: a run goes on from %+v", err, r.Saved)
	}
}

// That one can't be taken back is told, with the line that does it.
func TestACheckpointThatCantBeTakenBackIsTold(t *testing.T) {
	f, _, s := bucketed(t)
	s.run.S3 = "s3://lab-none/x"
	f.owner.Run = func(string) (Run, error) { return s.run, nil }
	told := ""
	at := Site{Cluster: "train", Publish: func(b event.Body) error {
		if n, is := b.(event.Noticed); is {
			told += n.Text + " " + n.Next
		}
		return nil
	}}
	away := f.sendAway(at, "train-1")
	away.withdraw([]savedCkpt{ckpt(1)})
	away.finish(t.Context())
	if !strings.Contains(told, "step-1 may be half, and was not removed from s3://lab-none/x/train/1f0c/train-1/checkpoints/node0/000001") ||
		!strings.Contains(told, "aws s3 rm s3://lab-none/x/train/1f0c/train-1/checkpoints/node0/000001.manifest.json") {
		t.Errorf("%q", told)
	}
}
