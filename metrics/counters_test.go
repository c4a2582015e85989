package metrics

import "testing"

func TestAStepBeyondItsTotalCountsThroughTheRun(t *testing.T) {
	text := "Epoch[1] Iteration[4/8] Loss: 0.9\nEpoch[1] Iteration[8/8] Loss: 0.8\nEpoch[1] Complete. Time taken: 00:00:01\nEpoch[2] Iteration[12/8] Loss: 0.7\nEpoch[1] Complete. Time taken: 00:00:01\nEpoch[2] Iteration[16/8] Loss: 0.6\n"
	if got, want := drawnOf(t, []byte(text)), "loss step 4:0.9 8:0.8 12:0.7 16:0.6\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
