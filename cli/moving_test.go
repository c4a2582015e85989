package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What `dlwb run --json >events.jsonl` writes lies in the project and grows
// with every line about its own sync.
func TestEventsMayBeWrittenIntoTheProject(t *testing.T) {
	b := newBed(t)
	b.profile(fmt.Sprintf(lossScript, 5, 0.01), "")
	path := filepath.Join(b.dir, "events.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var errs bytes.Buffer
	c := b.command("run", "--down", "--json")
	c.Stdout, c.Stderr = f, &errs
	if err := c.Run(); err != nil {
		t.Errorf("%v: %s", err, errs.String())
	}
	said, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(said), `"verdict":"succeeded"`) {
		t.Errorf("%s, %v", said, err)
	}
}
