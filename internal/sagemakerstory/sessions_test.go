//go:build linux

package sagemakerstory

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// standIn is in the place of AWS's plugin where that is not to be had: it holds its
// arguments against what the AWS CLI gives the plugin, and carries a port itself.
const standIn = `#!/usr/bin/env python3
import json, os, signal, socket, sys, threading
if sys.argv[1:] == ["--version"]:
    print("1.3.0.0")
    sys.exit(0)
answer, asked = json.loads(os.environ["AWS_SSM_START_SESSION_RESPONSE"]), json.loads(sys.argv[5])
if len(sys.argv) != 7 or sys.argv[1:5] != ["AWS_SSM_START_SESSION_RESPONSE", "us-west-2", "StartSession", ""] or sys.argv[6] != os.environ["AWS_ENDPOINT_URL"] \
        or sorted(answer) != ["SessionId", "StreamUrl", "TokenValue"] or not asked["Target"].startswith("sagemaker-training-job:jobs-"):
    print("Cannot perform start session: called with", sys.argv[1:])
    sys.exit(0)
print("\nStarting session with SessionId:", answer["SessionId"], flush=True)
if sorted(asked) == ["Target"]:
    signal.signal(signal.SIGINT, lambda *_: print("interrupted there", flush=True))
    for line in sys.stdin:
        if line.strip() == "exit":
            break
        print(str(6 * 7) if line.strip() == "echo $((6*7))" else "?", flush=True)
    sys.exit(0)
if sorted(asked) != ["DocumentName", "Parameters", "Target"] or asked["DocumentName"] != "AWS-StartPortForwardingSession" or asked["Parameters"]["localPortNumber"] != ["0"]:
    print("Cannot perform start session: asked for", asked)
    sys.exit(0)
signal.signal(signal.SIGINT, lambda *_: os._exit(0))
listener = socket.create_server(("127.0.0.1", 0))
print("Port %d opened for sessionId %s." % (listener.getsockname()[1], answer["SessionId"]), flush=True)
def pump(a, b):
    while data := a.recv(4096):
        b.sendall(data)
    b.close()
while True:
    near, _ = listener.accept()
    far = socket.create_connection(("127.0.0.1", int(asked["Parameters"]["portNumber"][0])))
    threading.Thread(target=pump, args=(near, far), daemon=True).start()
    threading.Thread(target=pump, args=(far, near), daemon=True).start()
`

// debugged is a project whose job was made with remote debugging and trains, with its
// plugin, AWS's own where DLWB_SESSION_PLUGIN has it.
func debugged(t *testing.T, script string) *project {
	t.Helper()
	p, bin := newProject(t), t.TempDir()
	at := filepath.Join(bin, "session-manager-plugin")
	var err error
	if real := os.Getenv("DLWB_SESSION_PLUGIN"); real != "" {
		err = os.Symlink(real, at)
	} else {
		err = testprogram.Write(at, []byte(standIn), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.Env = append(p.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	p.Write("train.py", script)
	p.profile("sagemaker", "{engine: plain, command: train.py}", "machines: {count: 2, instance: ml.m5.large, execution_role: Training, remote_debug: true}\n")
	p.Must("run", "--plain", "--detach")
	p.Await("the training", func() bool { jobs := p.fake.Jobs(); return len(jobs) == 1 && p.fake.Trains(jobs[0]) })
	return p
}

// plugins are the processes of the plugin that carry sessions of this account.
func (p *project) plugins() (left []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if text, _ := os.ReadFile(path); strings.Contains(string(text), "StartSession") && strings.Contains(string(text), p.fake.URL) {
			left = append(left, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return left
}

// A port of a container is reached as one of a node is, by one session for all
// connections, and nothing is left of the plugin when the tunnel ends, also when dlwb is
// killed.
func TestAPortOfATrainingContainerIsReached(t *testing.T) {
	sample.Leave(t)
	p := debugged(t, `import http.server, os, time
if os.environ["RANK"] == "0":
    s = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    print("port", s.server_port, flush=True)
    s.serve_forever()
time.sleep(600)
`)
	port := ""
	p.Await("the port", func() bool {
		m := regexp.MustCompile(`port (\d+)`).FindStringSubmatch(p.fake.Printed())
		if m != nil {
			port = m[1]
		}
		return m != nil
	})
	for _, end := range []os.Signal{os.Interrupt, os.Kill} {
		forward, told := p.Command("forward", "jobs", port, "--plain"), filepath.Join(t.TempDir(), "told")
		out, err := os.Create(told)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		forward.Stdout, forward.Stderr = out, out
		if err := forward.Start(); err != nil {
			t.Fatal(err)
		}
		address := ""
		p.Await("the address", func() bool {
			text, _ := os.ReadFile(told)
			address = regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(string(text))
			return address != ""
		})
		for range 3 {
			answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}).Get("http://" + address + "/train.py")
			if err != nil {
				said, _ := os.ReadFile(told)
				t.Fatalf("%v\n%s", err, said)
			}
			text, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil || !strings.Contains(string(text), "serve_forever") && answer.StatusCode != http.StatusNotFound {
				t.Errorf("the port gives %d, %q, %v", answer.StatusCode, text, err)
			}
		}
		if n := len(p.fake.Calls("StartSession")); n != map[os.Signal]int{os.Interrupt: 1, os.Kill: 2}[end] {
			t.Errorf("%d sessions were begun", n)
		}
		_ = forward.Process.Signal(end)
		_ = forward.Wait()
		p.Await("the end of the plugin", func() bool { return len(p.plugins()) == 0 })
	}
	if out, err := p.Try("exec", "jobs", "--plain", "--", "true"); err == nil || !strings.Contains(out, "runs no single command there") {
		t.Errorf("exec: %v\n%s", err, out)
	}
	p.fake.TurnOffDebug(p.fake.Jobs()[0])
	p.Must("down", "jobs", "--plain")
	p.clean()
}

// A shell in a container has the terminal: what is typed and Ctrl-C are its own, and dlwb
// goes on.
func TestAShellInATrainingContainerHasTheTerminal(t *testing.T) {
	p := debugged(t, "import time\ntime.sleep(600)\n")
	x := p.Terminal()
	x.Press(p.Program+" ssh jobs 1; echo code $?", "Enter")
	x.See(time.Minute, "Starting session with SessionId")
	x.Type("echo $((6*7))")
	x.Press("Enter")
	x.See(time.Minute, "42")
	x.Press("C-c")
	if os.Getenv("DLWB_SESSION_PLUGIN") == "" {
		x.See(time.Minute, "interrupted there")
	}
	x.Type("exit")
	x.Press("Enter")
	x.See(time.Minute, "code 0")
	all := p.fake.Sessions()
	if len(all) != 1 || !strings.HasSuffix(all[0].Target, "_algo-2") || all[0].Document != "" {
		t.Errorf("begun were %+v", all)
	}
	p.Await("the end of the session", func() bool { return p.fake.Sessions()[0].Ended })
	p.Must("down", "jobs", "--plain")
	p.clean()
}
