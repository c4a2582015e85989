package ui

import (
	"strings"

	"github.com/dlwb/dlwb/ui/text"
	"github.com/dlwb/dlwb/ui/watch"
	"github.com/dlwb/dlwb/workbench/event"
)

// The screens of a cluster and its run, as ui/watch draws them.

func stepsScreen() screen { return screen{at: atSteps, name: "steps", page: (*Model).stepsPage} }

func trainScreen() screen {
	return screen{at: atTrain, name: "train", draw: (*Model).drawTrain, move: (*Model).scrollLog, copy: (*Model).logText,
		back: (*Model).chartsBack, digit: (*Model).pickRank}
}

func receiptScreen() screen {
	return screen{at: atReceipt, name: "receipt", page: func(m *Model, w int) []string { return m.watch().Receipt(w) }, copy: (*Model).receiptText}
}

func sweepScreen() screen {
	return screen{at: atSweep, name: "sweep", page: func(m *Model, w int) []string { return m.watch().Sweep(w) }}
}

func (m *Model) noSweep() string {
	if m.ses == nil || m.ses.State.Sweep == nil {
		return "no sweep runs on this cluster"
	}
	return ""
}

func (m *Model) noReceipt() string {
	if m.ses == nil || m.ses.State.Receipt == nil {
		return "the cluster was not torn down"
	}
	return ""
}

// spotText counts down to the moment at which machines are taken away.
func (m *Model) spotText() string {
	if m.ses == nil || !m.here().inSession() && m.here() != atHelp {
		return ""
	}
	return m.watch().Spot()
}

// watch is what is known of the session, as its screens draw it.
func (m *Model) watch() watch.Page {
	return watch.Page{Look: m.looks(), Of: m.ses, Again: m.noCluster() == "" && !m.opts.ReadOnly}
}

// sessionTitle is the cluster or run that is looked at, and its money.
func (m *Model) sessionTitle() (left, right string) {
	if m.ses == nil {
		return "", ""
	}
	s := m.styles
	left = "  " + s.Strong.Of(m.ses.Title())
	if p := m.ses.State.Provider; p != "" {
		left += s.Dim.Of(" on " + text.Word(p))
	}
	right = m.watch().Money()
	if m.ses.State.Phase() == event.PhaseUnresolved {
		right = s.Bad.Of("! UNRESOLVED") + "  " + right
	}
	return left, right
}

// receiptText has its commands whole, whatever fits on the screen.
func (m *Model) receiptText() string {
	return strings.Join(m.watch().Receipt(max(m.bodyWidth(), copyWidth)), "\n")
}

func (m *Model) drawTrain(w, h int) []string { return m.watch().Train(w, h, m.chartPage()) }

// stepsPage is the steps of a session, or why they can't be read.
func (m *Model) stepsPage(w int) []string {
	p := m.watch()
	if m.ses.Lost != "" {
		return p.Lost(w)
	}
	again := m.find("R")
	p.Retry = again != nil && m.refusal(again) == ""
	return p.Steps(w)
}
