package ui_test

import (
	"slices"
	"testing"

	"github.com/dlwb/dlwb/internal/scenes"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
)

func TestOneKeyOpensAllForwardsOfTheProfileAndOthersMayBeNamed(t *testing.T) {
	s := running(t, ui.Options{})
	s.Listed = []string{"tensorboard", "8265/http"}
	s.Press("F")
	says(t, s, "forward, such as", "tensorboard 8265/http")
	s.Press("enter")
	if !slices.Contains(s.Wishes, "forward tensorboard 8265/http") {
		t.Errorf("the wishes: %q", s.Wishes)
	}
	says(t, s, "2 tunnels open", "No tunnel is open")
	s.Press("F", "ctrl+u").Type("9000, 9001").Press("enter")
	if !slices.Contains(s.Wishes, "forward 9000 9001") {
		t.Errorf("the wishes: %q", s.Wishes)
	}
	s.Listed = nil
	s.Press("F").Type("9002").Press("enter")
	if !slices.Contains(s.Wishes, "forward 9002") {
		t.Errorf("the wishes: %q", s.Wishes)
	}
}

func TestAddressThatIsOpenedOrCopiedIsAFreshOne(t *testing.T) {
	var opened []string
	s := running(t, ui.Options{OpenURL: func(url string) error { opened = append(opened, url); return nil }})
	raw := "http://127.0.0.1:8265/"
	story := scenes.NewStory(2, 0)
	s.Play(story.Tell(
		event.ForwardOpened{Kind: event.ForwardHTTP, Name: "jupyter", LocalPort: 8888, RemotePort: 1, URL: "http://127.0.0.1:8888/"},
		event.ForwardOpened{Kind: event.ForwardTCP, Name: "8265", LocalPort: 8265, RemotePort: 8265, URL: raw}).Events()...)
	s.Press("f", "enter")
	fresh := "http://127.0.0.1:8888/?dlwb_token=4c1f"
	if !slices.Equal(opened, []string{fresh}) {
		t.Errorf("opened %q", opened)
	}
	if s.Press("y"); s.Copied != fresh {
		t.Errorf("copied %q", s.Copied)
	}
	if s.Press("down", "y"); s.Copied != raw {
		t.Errorf("copied %q of a raw one", s.Copied)
	}
}

func TestHowATunnelStandsIsSeen(t *testing.T) {
	s := running(t, ui.Options{})
	story := scenes.NewStory(2, 0)
	at := event.ForwardChanged{Kind: event.ForwardHTTP, Name: "jupyter", LocalPort: 8888, RemotePort: 1}
	away, back, refused := at, at, at
	away.Why, back.Connected, refused.Connected, refused.Why = "no answer within 10s", true, true, "connection refused"
	s.Play(story.Tell(event.ForwardOpened{Kind: at.Kind, Name: at.Name, LocalPort: 8888, RemotePort: 1, URL: "http://127.0.0.1:8888/"},
		event.ForwardOpened{Kind: event.ForwardReverse, Name: "reverse", LocalPort: 8888, RemotePort: 6006}, away).Events()...)
	s.Press("f")
	says(t, s, "? reconnecting: no answer within 10s", "reverse: from the node to here", "node0:6006")
	s.Play(scenes.NewStory(2, 0).Tell(refused).Events()...)
	says(t, s, "! connected; what failed last: connection refused")
	s.Play(scenes.NewStory(2, 0).Tell(back).Events()...)
	hides(t, s, "reconnecting", "failed last")
	s.Play(scenes.NewStory(2, 0).Tell(event.ForwardClosed{Kind: at.Kind, LocalPort: 8888, RemotePort: 1}).Events()...)
	hides(t, s, "jupyter       8888")
	says(t, s, "node0:6006") // the other one that has this number
}
