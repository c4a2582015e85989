package kubernetes

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/testprogram"
)

// rayClient stands in for the ray of the command line: the first follow is cut in the
// middle, and the next gives all again.
const rayClient = `#!/bin/sh
[ "$1 $2" = "job submit" ] && { echo "submitted $*" >>"$DIR/said"; : >"$DIR/submitted"; exit 0; }
echo "Job submission server address: x"
printf '[rank0] one\n[rank0] one\n'
if [ ! -e "$DIR/cut" ]; then : >"$DIR/cut"; exit 1; fi
printf '[rank0]+ two\n'
case "$*" in *--follow*) [ "$FAIL" = no ] || exit 1 ;; esac
printf '[rank0] three\n'
`

// What hands a driver in waits for Ray, hands it in once, and passes each line on once,
// also where the connection is lost, and where it is lost just when the driver ends.
func TestADriverIsHandedInOnceAndItsLinesComeOnce(t *testing.T) {
	for fail, code := range map[string]int{"no": 0, "yes": 1} {
		dir := t.TempDir()
		if err := testprogram.Write(filepath.Join(dir, "ray"), []byte(rayClient), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "submit.py"), []byte(rayPy), 0o600); err != nil {
			t.Fatal(err)
		}
		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, submitted := os.Stat(filepath.Join(dir, "submitted"))
			_, cut := os.Stat(filepath.Join(dir, "cut"))
			switch n := asked.Add(1); {
			case n < 3: // it is not up
				http.Error(w, "starting", http.StatusServiceUnavailable)
			case submitted != nil:
				http.NotFound(w, r)
			case cut == nil && n > 5:
				fmt.Fprintf(w, `{"status": %q}`, map[string]string{"no": "SUCCEEDED", "yes": "FAILED"}[fail])
			default:
				fmt.Fprint(w, `{"status": "RUNNING"}`)
			}
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, "python3", filepath.Join(dir, "submit.py"))
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "DIR="+dir, "FAIL="+fail, "RAY_DASHBOARD_ADDRESS="+strings.TrimPrefix(server.URL, "http://"), "RAY_JOB_SUBMISSION_ID=run-abcde")
		out, err := cmd.Output()
		cancel()
		server.Close()
		var ranks []string
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "[rank") {
				ranks = append(ranks, strings.TrimSpace(line))
			}
		}
		if got := strings.Join(ranks, "|"); got != "[rank0] one|[rank0] one|[rank0]+ two|[rank0] three" || cmd.ProcessState.ExitCode() != code {
			t.Errorf("failing %s: %q, code %d, %v", fail, got, cmd.ProcessState.ExitCode(), err)
		}
		said, err := os.ReadFile(filepath.Join(dir, "said"))
		if want := "submitted job submit --address " + server.URL + " --submission-id run-abcde --no-wait -- sh /dlwb/given/launch.sh driver\n"; err != nil || string(said) != want {
			t.Errorf("%q, %v", said, err)
		}
	}
}
