package history

import (
	"time"

	"github.com/dlwb/dlwb/workbench/event"
)

// Story is what of a run was told so far: its events are the truth about it,
// whichever dlwb wrote them and was killed behind which of them.
type Story struct {
	Started      bool // every rank was launched
	TrainStarted bool
	Ended        *event.RunEnded
	EndedAt      time.Time
	TrainEnded   bool
	FetchEnded   bool
	Fetched      bool // well
	Results      *event.ResultsFetched
	Lost         *event.ResultsLost
	Billed       *event.RunBilled // what it cost in the end; nil: that is not known
}

// Over reports that nothing is left to tell.
func (s Story) Over() bool {
	return s.Ended != nil && (!s.Started || s.TrainEnded && s.FetchEnded)
}

// StoryOf is the story that the events of a run tell.
func StoryOf(events []event.Event) Story {
	var st Story
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.RunStarted:
			st.Started = true
		case event.StepStarted:
			st.TrainStarted = st.TrainStarted || b.Step == event.StepTrain
		case event.RunEnded:
			st.Ended, st.EndedAt = &b, e.Time
		case event.ResultsFetched:
			st.Results, st.Lost = &b, nil
			st.Fetched = st.Fetched || st.Ended != nil && !b.Partial
		case event.RunBilled:
			st.Billed = &b
		case event.ResultsLost:
			st.Lost = &b
		case event.StepEnded:
			st.TrainEnded = st.TrainEnded || b.Step == event.StepTrain
			st.FetchEnded = st.FetchEnded || b.Step == event.StepFetch
			st.Fetched = st.Fetched || b.Step == event.StepFetch && b.OK
		}
	}
	return st
}
