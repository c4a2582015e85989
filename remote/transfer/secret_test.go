//go:build unix

package transfer

import (
	"strings"
	"testing"
)

func TestSecretsAreSaidBeforeTheyAreSent(t *testing.T) {
	key := "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n"
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"config.py": "x = 1\naws = 'AKIA" + "ABCDEFGHIJKLMNOP'\n", "deploy[1].sh": key, "fine.py": "# AKIA is no key, nor is sk-learn\n",
		"blob": "\x00AKIA" + "ABCDEFGHIJKLMNOP", "sub/hub.py": "token = 'hf_" + strings.Repeat("a", 34) + "'", ".env": "PASSWORD=1",
	})
	tree := scanTest(t, dir)
	warnings, err := tree.Read(t.Context())
	check(t, err)
	want := []string{
		"config.py seems to hold an AWS access key, and is sent. To leave it out, put the line /config.py into .dlwbignore.",
		`deploy[1].sh seems to hold a private key, and is sent. To leave it out, put the line /deploy\[1].sh into .dlwbignore.`,
		"sub/hub.py seems to hold a Hugging Face token, and is sent. To leave it out, put the line /sub/hub.py into .dlwbignore.",
	}
	if strings.Join(warnings, "\n") != strings.Join(want, "\n") {
		t.Errorf("warned:\n%s\nwant:\n%s", strings.Join(warnings, "\n"), strings.Join(want, "\n"))
	}
	if held := strings.Join(tree.Warnings, "\n"); !strings.Contains(held, "Held back") || !strings.Contains(held, ".env") {
		t.Errorf("the scan warned:\n%s", held)
	}
	// The lines that are told do what they say.
	writeFiles(t, dir, map[string]string{".dlwbignore": "/config.py\n/deploy\\[1].sh\n/sub/hub.py\n"})
	if warnings, err = scanTest(t, dir).Read(t.Context()); err != nil || len(warnings) > 0 {
		t.Errorf("left out, and still warned of: %q, %v", warnings, err)
	}
}
