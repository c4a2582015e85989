package event

// The states of a trial.
const (
	TrialWaiting = "waiting"
	TrialRunning = "running"
	TrialDone    = "done"
	TrialEarly   = "early" // ended by the rule of the sweep
	TrialFailed  = "failed"
)

// SweepChanged says how far a sweep is.
type SweepChanged struct {
	Sweep   string     `json:"sweep"`
	Method  string     `json:"method"`
	Metric  string     `json:"metric,omitempty"`
	Mode    string     `json:"mode"`
	Trials  int        `json:"trials"`
	Running int        `json:"running"`
	Done    int        `json:"done"`
	Early   int        `json:"early"`
	Failed  int        `json:"failed"`
	Best    int        `json:"best,omitempty"` // the number of a trial; 0: none yet
	Rows    []TrialRow `json:"rows"`           // the best first, the first two hundred
}

// TrialRow is a trial in a leaderboard.
type TrialRow struct {
	Trial    int      `json:"trial"`
	Run      string   `json:"run,omitempty"`
	State    string   `json:"state"` // waiting, running, done, early, failed
	Settings string   `json:"settings"`
	Value    *float64 `json:"value,omitempty"` // the last of the metric
	Values   int      `json:"values"`          // how many there are
	Best     bool     `json:"best,omitempty"`
	Duration float64  `json:"duration_s,omitempty"`
	Why      string   `json:"why,omitempty"` // it failed, or was ended early
}

// EventName is the name of the event.
func (SweepChanged) EventName() string { return "sweep" }

// The states of a step of a chain.
const (
	ChainRuns    = "runs"
	ChainDone    = "done"
	ChainSkipped = "skipped"
	ChainFailed  = "failed"
)

// ChainStep says how far a chain of profiles is.
type ChainStep struct {
	Profile string `json:"profile"`
	Path    string `json:"path"`
	Step    int    `json:"step"` // from 1
	Steps   int    `json:"steps"`
	State   string `json:"state"` // runs, done, skipped, failed
	Run     string `json:"run_id,omitempty"`
	Why     string `json:"why,omitempty"`
}

// EventName is the name of the event.
func (ChainStep) EventName() string { return "chain" }
