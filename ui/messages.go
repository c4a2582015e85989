package ui

import (
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/history"
)

type (
	// ticked wakes the model up: clocks, spinners and staleness move on.
	ticked struct{ at time.Time }
	// homeRead is what exists, or why that could not be found out.
	homeRead struct {
		turn int
		home event.Home
		err  error
	}
	// homeDue says that what exists should be read again. Turn drops the
	// timers of an earlier look.
	homeDue struct{ turn int }
	// tabled is the table of runs. Its number drops answers to earlier
	// questions.
	tabled struct {
		gen   int
		table history.Table
		err   error
	}
	// planned is the plan of a profile.
	planned struct {
		path string
		plan *PlanView
		err  error
	}
	// trusted says that the user's trust in a profile was kept, or why not.
	trusted struct {
		path string
		err  error
	}
	// started names the cluster that a profile became.
	started struct {
		path, cluster string
		err           error
	}
	// subscribed hands over the stream of a session.
	subscribed struct {
		gen  int
		feed Feed
		err  error
	}
	// gathered is one batch of events. Ended says that no more will come.
	gathered struct {
		gen    int
		events []event.Event
		ended  bool
		err    error
	}
	// feedDue says that the stream of a session may be read again.
	feedDue struct{ gen int }
	// logRead is one chunk of a rank's log. Behind says that more is stored.
	logRead struct {
		gen    int
		run    string
		rank   int
		off    int64
		bytes  []byte
		behind bool
		err    error
	}
	// endRead is the end of a log, for a form that tries an expression on it.
	endRead struct {
		gen   int
		run   string
		size  int64
		bytes []byte
		err   error
	}
	// metricAdded is an expression that was added to the run, or why not.
	metricAdded struct {
		name, regex string
		done        taskDone
	}
	// questioned is what is to be asked before something is destroyed.
	questioned struct {
		gen int
		q   event.Question
		err error
	}
	// taskDone is the end of a wish: what was done, or why it was not.
	taskDone struct {
		task int
		text string
		url  string // to be opened, when there is one
		err  error
	}
	// wrote is where a new profile was written to.
	wrote struct {
		path string
		err  error
	}
	// browserless is an address that no browser could be opened for.
	browserless struct{ url string }
	// addressMade is a fresh address of a tunnel, and what is done with it.
	addressMade struct {
		url  string
		err  error
		then func(*Model, string) tea.Cmd
	}
	// listed are the forwards that a cluster's profile lists.
	listed struct {
		cluster string
		what    []string
	}
	// pruned takes a short note off the screen, if it is still that one.
	pruned struct{ note int }
)
