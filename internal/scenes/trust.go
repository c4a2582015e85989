package scenes

import (
	"errors"
	"time"

	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/trust"
)

// Stranger is what a profile would do that came with somebody else's project.
func Stranger() *trust.Subject {
	const dir = "/home/ada/clones/fastlm"
	return &trust.Subject{
		Path: dir + "/dlwb.yaml", Key: "3f2a9c0b1d4e5f60718293a4b5c6d7e83f2a9c0b1d4e5f60718293a4b5c6d7e8",
		Name: "fastlm", Provider: "hosts", Nodes: 2, Command: "train.py --epochs 10", Project: dir, CodeDir: "/home/ada",
		Effects: []trust.Effect{
			{Kind: trust.Connects, Unusual: true, Text: "ci@gpu.fastlm.example:2222 by ssh; the profile itself vouches for its host key, SHA256:pVq3rT0Wb8m4o2h7s1c9Yk5e6uJxZdLfNgAaBvQwErM"},
			{Kind: trust.Sends, Unusual: true, Text: "/home/ada to the nodes: a directory outside the project " + dir},
			{Kind: trust.Sends, Unusual: true, Text: "what code.exclude wants sent although ignore files leave it out: !/.ssh/id_*"},
			{Kind: trust.Sends, Unusual: true, Text: ".env is asked for by a rule of the project; it looks like a secret, and only your own settings let it go"},
			{Kind: trust.Reads, Unusual: true, Text: "the variable AWS_SECRET_ACCESS_KEY of your shell, and gives its value to the training as SEED"},
			{Kind: trust.Reads, Unusual: true, Text: "the variable WANDB_API_KEY of your shell, and gives its value to the training as WANDB_API_KEY"},
			{Kind: trust.Connects, Text: "gpu1 by ssh; known_hosts, or you, vouch for the host keys"},
			{Kind: trust.Runs, Text: "what requirements.txt installs, on the nodes"},
			{Kind: trust.Runs, Text: "train.py --epochs 10, on the nodes"},
			{Kind: trust.Opens, Text: "ports of this machine for jupyter, 8265 of node0, while the run is watched"},
			{Kind: trust.Brings, Text: "outputs of node0, into dlwb's state directory"},
		},
	}
}

// stranger is a home with a profile that is not trusted.
func stranger(w, h int, theme string) *Stage {
	return NewStage(w, h, ui.Options{Theme: theme}, func(s *Stage) {
		u := Stranger()
		s.HomeIs = event.Home{Profiles: []event.ProfileInfo{{Name: u.Name, Path: u.Path, Provider: u.Provider, UsedAt: Epoch.Add(-time.Hour)}}}
		s.PlanErr = errors.Join(&trust.Untrusted{Subject: u})
	})
}

func planUntrusted(w, h int, theme string) *Stage { return stranger(w, h, theme).Press("enter") }

func askTrust(w, h int, theme string) *Stage {
	return planUntrusted(w, h, theme).Press("R").Advance(time.Second)
}
