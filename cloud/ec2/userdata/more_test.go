//go:build unix

package userdata

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// readByCloudInit has the real cloud-init read user-data and say what it comes to:
// the merged document, and the scripts.
const readByCloudInit = `
import email.message, json, os, sys, tempfile
from cloudinit import helpers, user_data, util, handlers
from cloudinit.handlers.cloud_config import CloudConfigPartHandler
class Source:
    def get_instance_id(self): return "i-1"
d = tempfile.mkdtemp()
paths = helpers.Paths({"cloud_dir": d, "run_dir": d}, Source())
os.makedirs(paths.get_ipath())
msg = user_data.UserDataProcessor(paths).process(sys.stdin.buffer.read())
handler, scripts = CloudConfigPartHandler(paths), []
handler.handle_part(None, handlers.CONTENT_START, None, None, None, None)
for part in msg.walk():
    if part.is_multipart():
        continue
    kind, text = part.get_content_type(), util.fully_decoded_payload(part)
    if kind == "text/cloud-config":
        handler.handle_part(None, kind, part.get_filename(), text, "always", dict(part))
    elif kind == "text/x-shellscript":
        scripts.append(text)
handler.handle_part(None, handlers.CONTENT_END, None, None, None, None)
print(json.dumps({"config": util.load_yaml(open(paths.get_ipath("cloud_config")).read()), "scripts": scripts}))
`

// cloudInit is what the real one makes of user-data.
func cloudInit(t *testing.T, userData []byte) (config map[string]any, scripts []string) {
	t.Helper()
	python := os.Getenv("DLWB_CLOUDINIT")
	if python == "" {
		t.Skip("make test-cloudinit runs this, with cloud-init as Debian has it")
	}
	cmd := exec.Command(python, "-c", readByCloudInit)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(userData), os.Stderr
	out, err := cmd.Output()
	must(t, err)
	var got struct {
		Config  map[string]any
		Scripts []string
	}
	must(t, json.Unmarshal(out, &got))
	return got.Config, got.Scripts
}

// What a user adds is done besides, and the lease stays where it is, whatever the
// user's document says. The real cloud-init says what it makes of both.
func TestCloudInitKeepsTheLeaseBesideWhatAUserAdds(t *testing.T) {
	for name, c := range map[string]struct{ more, script string }{
		"nothing":       {},
		"a document":    {more: "#cloud-config\npackages: [nfs-common]\nbootcmd:\n- echo mine\nruncmd: [echo later]\n"},
		"a script":      {more: "#!/bin/sh\necho it's mine\n", script: "echo it's mine"},
		"a long one":    {more: "#cloud-config\nwrite_files:\n- path: /etc/long\n  content: " + strings.Repeat("long words ", 2000) + "\n"},
		"a long script": {more: "#!/bin/sh\n" + strings.Repeat("echo a line of it\n", 2000), script: "echo a line of it"},
	} {
		t.Run(name, func(t *testing.T) {
			b := goodBoot(t)
			b.More = c.more
			text, err := Render(b)
			must(t, err)
			config, scripts := cloudInit(t, text)
			boot, _ := config["bootcmd"].([]any)
			if len(boot) == 0 || !strings.Contains(boot[0].(string), "dlwb-lease.service") {
				t.Fatalf("the lease is gone: %v", config["bootcmd"])
			}
			if mine := strings.Contains(c.more, "echo mine"); mine != (len(boot) == 2) {
				t.Errorf("bootcmd has %d entries", len(boot))
			}
			if keys, _ := config["ssh_keys"].(map[string]any); keys["ed25519_private"] == "" || config["ssh_deletekeys"] != true {
				t.Error("the host key is gone")
			}
			if strings.Contains(c.more, "packages") && config["packages"] == nil || strings.Contains(c.more, "write_files") && config["write_files"] == nil {
				t.Errorf("what the user added is gone: %v", config)
			}
			if c.script != "" && (len(scripts) != 1 || !strings.Contains(scripts[0], c.script)) {
				t.Errorf("scripts %q", scripts)
			}
		})
	}
}

// What would undo the lease or let others in is refused.
func TestWhatAUserAddsCanNotUndoTheLease(t *testing.T) {
	for _, more := range []string{
		"#cloud-config\nmerge_how: [{name: dict, settings: [replace]}]\n", "#cloud-config\nssh_keys: {}\n", "#cloud-config\nusers: []\n",
		"#cloud-config\n: :\n -", "echo hello", "#include http://example.org/x",
	} {
		b := goodBoot(t)
		b.More = more
		if _, err := Render(b); err == nil || !strings.Contains(err.Error(), "machines.user_data") {
			t.Errorf("%q: %v", more, err)
		}
	}
}

func TestLongUserDataIsCompressed(t *testing.T) {
	b := goodBoot(t)
	b.More = "#!/bin/sh\n" + strings.Repeat("echo a line of it\n", 4000)
	text, err := Render(b)
	must(t, err)
	if len(text) > MaxSize {
		t.Errorf("%d bytes", len(text))
	}
	r, err := gzip.NewReader(bytes.NewReader(text))
	must(t, err)
	whole, err := io.ReadAll(r)
	must(t, err)
	if !strings.Contains(string(whole), b.More) {
		t.Error("it does not come out as it went in")
	}
	again, err := Render(b)
	must(t, err)
	if !bytes.Equal(text, again) {
		t.Error("it is not the same the next time")
	}
	b.More = "#!/bin/sh\n# " + noise(30_000) + "\n"
	if _, err := Render(b); err == nil || !strings.Contains(err.Error(), "compressed") {
		t.Error(err)
	}
}

// noise is a text that can't be made much shorter.
func noise(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[rand.IntN(62)]
	}
	return string(text)
}
