package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/store"
)

// complete asks for completions as the shell scripts do.
func complete(t *testing.T, args ...string) (words []string, directive string) {
	t.Helper()
	code, stdout, _ := say(t, append([]string{"__complete"}, args...)...)
	if code != 0 {
		t.Fatalf("exit code %d", code)
	}
	for _, line := range strings.Split(strings.TrimSpace(stdout), "\n") {
		word, _, _ := strings.Cut(line, "\t")
		words = append(words, word)
	}
	return words[:len(words)-1], words[len(words)-1]
}

func TestTheShellCompletesWhatIsThere(t *testing.T) {
	dir := freshHome(t)
	db, err := store.Open(filepath.Join(dir, "dlwb.sqlite"))
	if err != nil {
		t.Fatal(err)
	}
	life, err := db.BeginCluster(store.Cluster{Name: "lab", Provider: "local", Phase: "ready", CreatedAt: time.Now(), Data: []byte(`{"cluster":{"nodes":[{},{}]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.PutRun(store.Run{ID: "lab-1", Cluster: "lab", Life: life, StartedAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"plan ": "yaml yml :8", "run --down ": "yaml yml :8", "init ": " :16",
		"down ": "lab :4", "exec ": "lab :4", "attach ": "lab lab-1 :4", "logs ": "lab lab-1 :4", "stop ": "lab lab-1 :4", "pull ": "lab-1 :4",
		"ssh ": "lab :4", "ssh lab ": "0 1 :4", "ssh lab 1 ": " :4", "forward ": "lab :4", "forward lab ": "jupyter tensorboard :4",
		"forward lab j": "jupyter :4", "down lab ": " :4", "run --theme ": "auto dark light :4", "run --glyphs ": "auto unicode ascii :4", "logs --rank ": "all 0 launcher-0 :4",
		"att": "attach :4",
	} {
		words, directive := complete(t, strings.Split(args, " ")...)
		if got := strings.Join(words, " ") + " " + directive; got != want {
			// The shell filters by what is typed; cobra does it for commands only.
			if !slices.Contains(words, strings.Fields(want)[0]) || !strings.HasSuffix(want, directive) {
				t.Errorf("dlwb %s: %q, want %q", args, got, want)
			}
		}
	}
}

func TestCompletionMakesNoFiles(t *testing.T) {
	dir := freshHome(t)
	if words, _ := complete(t, "down", ""); len(words) > 0 {
		t.Errorf("got %q", words)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the state directory was made: %v", err)
	}
}
