package cli

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
)

func TestTheReferencePagesAreCurrent(t *testing.T) {
	for file, args := range map[string][]string{"../docs/events.md": {"events"}, "../docs/commands.md": {"help", "commands"}, "../docs/profile.md": {"help", "profile"},
		"../docs/settings.md": {"help", "settings"}, "../docs/keys.md": {"help", "keys"}} {
		var out bytes.Buffer
		a := newApp(strings.NewReader(""), &out, &out)
		if code := a.run(context.Background(), args); code != 0 {
			t.Fatal(out.String())
		}
		page, err := os.ReadFile(file)
		if err != nil || !bytes.Equal(page, out.Bytes()) {
			t.Errorf("%s is stale (%v): make generate", file, err)
		}
	}
}

// What a command prints with --json is part of it: one that is not in the table
// is not documented.
func TestEveryCommandSaysWhatItAnswers(t *testing.T) {
	known := map[string]bool{}
	root := (&app{}).root()
	for _, c := range append(root.Commands(), root) {
		if c.IsAdditionalHelpTopicCommand() {
			continue
		}
		known[c.Name()] = true
		if out := outputs[c.Name()]; out.answer == nil && out.stream == "" && out.none == "" {
			t.Errorf("outputs does not know %s", c.Name())
		}
	}
	for name := range outputs {
		if !known[name] {
			t.Errorf("outputs has %s, which is no command", name)
		}
	}
	for name := range suggestFor {
		if !known[name] {
			t.Errorf("suggestFor has %s, which is no command", name)
		}
	}
}

// Every command must be listed in the README, so that neither grows without
// the other.
func TestTheReadmeNamesEveryCommand(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range (&app{}).root().Commands() {
		if !c.Hidden && !c.IsAdditionalHelpTopicCommand() && !strings.Contains(string(readme), "`"+c.Name()) {
			t.Errorf("the README does not name `%s`", c.Name())
		}
	}
}
