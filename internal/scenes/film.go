package scenes

import (
	"time"

	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
)

// FilmW and FilmH are the size of the film's screen.
const FilmW, FilmH = 110, 32

// Film plays a run from its first step to its receipt and hands over each
// frame, five a second.
func Film(shoot func(frame string) error) error {
	t := NewStory(2, 0)
	s := NewStage(FilmW, FilmH, ui.Options{StartPath: "~/lm/dlwb.yaml", Theme: "dark"}, nil)
	defer s.Close()
	f := &film{stage: s, story: t, shoot: shoot}
	t.Up().Launch()
	f.show(6)
	for i := range 30 {
		t.Train(float64(i)/30, float64(i+1)/30)
		s.Logs[0] = Output(float64(i+1) / 30)
		t.Log(0, s.Logs[0])
		f.show(1)
	}
	t.End()
	f.show(8)
	f.press("l", 8)
	f.press("t", 4)
	f.press("X", 8)
	s.Press("tab")
	f.press("enter", 1)
	t.Down(true)
	f.show(15)
	return f.err
}

// film shows a story's events as they come.
type film struct {
	stage *Stage
	story *Story
	shown int
	shoot func(string) error
	err   error
}

// show plays the new events one after the other over a number of frames.
func (f *film) show(frames int) {
	events := f.story.Events()[f.shown:]
	f.shown += len(events)
	for i := range frames {
		f.play(events[len(events)*i/frames : len(events)*(i+1)/frames])
	}
}

func (f *film) play(events []event.Event) {
	if len(events) > 0 {
		if at := events[len(events)-1].Time; at.After(f.stage.now()) {
			f.stage.Advance(at.Sub(f.stage.now()))
		}
	}
	f.stage.Play(events...)
	f.stage.Advance(100 * time.Millisecond)
	if f.err == nil {
		f.err = f.shoot(f.stage.Model.Frame())
	}
}

// press presses a key and stays for a number of frames.
func (f *film) press(key string, frames int) {
	f.stage.Press(key)
	for range frames {
		f.play(nil)
	}
}
