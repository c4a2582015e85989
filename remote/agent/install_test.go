//go:build linux

package agent

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// An agent that nobody uses here may run on another host with the same home: it goes when no
// run there is unfinished.
func TestAgentsStayWhileARunIsUnfinished(t *testing.T) {
	dir := t.TempDir()
	bin, run := filepath.Join(dir, "bin"), filepath.Join(dir, "runs", "r1")
	agent, broken := filepath.Join(bin, Prefix+"old"), filepath.Join(bin, "."+Prefix+"part")
	long := time.Now().Add(-2 * unusedFor)
	put := func(path string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
	}
	there := func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	}
	put(agent)
	put(broken)
	put(filepath.Join(run, "lock"))
	removeOld(bin)
	if !there(agent) || there(broken) {
		t.Errorf("while a run goes on: the agent %v, what did not arrive whole %v", there(agent), there(broken))
	}
	put(filepath.Join(run, "exit"))
	removeOld(bin)
	if there(agent) {
		t.Error("an agent that nobody uses stays")
	}
}
