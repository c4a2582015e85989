package scenes

import "github.com/dlwb/dlwb/workbench/event"

// sweeping is a sweep half done: a best trial, two that run, one ended early, one
// that failed, and some that wait.
func sweeping(w, h int, theme string) *Stage {
	t := NewStory(4, 0)
	t.Up()
	at := func(v float64) *float64 { return &v }
	t.Tell(event.SweepChanged{Sweep: "s3f2a9c", Method: "random", Metric: "val/loss", Mode: "min", Trials: 12, Running: 2, Done: 3, Early: 1, Failed: 1, Best: 4, Rows: []event.TrialRow{
		{Trial: 4, Run: "charlm-s3f2a9c-t04", State: event.TrialDone, Settings: "lr=0.00312 layers=4", Value: at(1.2041), Values: 40, Best: true, Duration: 312},
		{Trial: 1, Run: "charlm-s3f2a9c-t01", State: event.TrialDone, Settings: "lr=0.000871 layers=2", Value: at(1.3312), Values: 40, Duration: 288},
		{Trial: 6, Run: "charlm-s3f2a9c-t06", State: event.TrialRunning, Settings: "lr=0.00209 layers=3", Value: at(1.4477), Values: 22},
		{Trial: 7, Run: "charlm-s3f2a9c-t07", State: event.TrialRunning, Settings: "lr=0.0155 layers=4", Value: at(1.9004), Values: 11},
		{Trial: 2, Run: "charlm-s3f2a9c-t02", State: event.TrialDone, Settings: "lr=0.0441 layers=2", Value: at(2.0155), Values: 40, Duration: 291},
		{Trial: 5, Run: "charlm-s3f2a9c-t05", State: event.TrialEarly, Settings: "lr=0.0000113 layers=1", Value: at(3.1123), Values: 10, Duration: 74, Why: "its best of 10 values, 3.1123, is behind the median of the others, 1.61"},
		{Trial: 3, Run: "charlm-s3f2a9c-t03", State: event.TrialFailed, Settings: "lr=0.0977 layers=4", Duration: 9, Why: "rank 0 on node2 exited with code 1: CUDA out of memory"},
		{Trial: 8, State: event.TrialWaiting, Settings: "lr=0.000342 layers=2"},
		{Trial: 9, State: event.TrialWaiting, Settings: "lr=0.00901 layers=1"},
		{Trial: 10, State: event.TrialWaiting, Settings: "lr=0.0000402 layers=3"},
		{Trial: 11, State: event.TrialWaiting, Settings: "lr=0.0214 layers=2"},
		{Trial: 12, State: event.TrialWaiting, Settings: "lr=0.00133 layers=4"},
	}})
	return open(w, h, theme, t, Output(1)).Press("w")
}
