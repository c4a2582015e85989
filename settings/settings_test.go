package settings

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// lay writes the file of settings of a user who has nothing else.
func lay(t *testing.T, text string) string {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("AppData", filepath.Join(home, "AppData"))
	path, err := Path()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatTheUserAllowsIsRead(t *testing.T) {
	path := lay(t, "# mine\ncode:\n  allow: [~/shared, /data/sets]\nsecrets: {send: [ca.pem, \"certs/*.key\"], hold: ['customers*']}\n")
	s, err := Load()
	home := os.Getenv("HOME")
	if err != nil || s.Path != path || !slices.Equal(s.AllowCode, []string{filepath.Join(home, "shared"), filepath.Clean("/data/sets")}) ||
		!slices.Equal(s.Send, []string{"ca.pem", "certs/*.key"}) || !slices.Equal(s.Hold, []string{"customers*"}) {
		t.Errorf("got %+v, %v", s, err)
	}
}

func TestNoSettingsAllowNothing(t *testing.T) {
	path := lay(t, "")
	if s, err := Load(); err != nil || s.AllowCode != nil || s.Send != nil {
		t.Errorf("an empty file: %+v, %v", s, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if s, err := Load(); err != nil || s.Path != path || s.Send != nil {
		t.Errorf("no file: %+v, %v", s, err)
	}
}

func TestFaultsOfTheSettingsNameTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"secret: {send: [x]}\n":                `:1:1: key "secret": the settings have no such key; did you mean "secrets"?`,
		"secrets: {sent: [x]}\n":               `:1:11: key "sent" in secrets: secrets has no such key; did you mean "send"?`,
		"code:\n  allow: /data\n":              `:2:10: code.allow: this is a single value, and a list is needed; such as allow: [~/code/common]`,
		"code:\n  allow: [../data]\n":          `:2:11: code.allow "../data": it is relative`,
		"code:\n  allow: [x: {y: z}]\n":        `code.allow`,
		"code: [a]\n":                          `:1:7: code: this is a list, and a mapping is needed`,
		"- a\n":                                `:1:1: the file: this is a list, and a mapping is needed`,
		"zzz: {}\n":                            `known are code, secrets`,
		"secrets: &a {send: [x]}\n":            `anchors are not allowed in the settings`,
		"secrets: {send: [x]}\nsecrets: {}\n":  `already given in line 1`,
		"secrets: {send: ['']}\n":              `it is empty`,
		"secrets: {send: [x\n":                 `:`,
		strings.Repeat("#", 70<<10) + "\nx: 1": `the most for the settings`,
	} {
		path := lay(t, text)
		_, err := Load()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path+":") {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

func TestSettingsThatOthersCanChangeAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("NOT RUN: Windows guards them by access lists")
	}
	for name, break_ := range map[string]func(path string) error{
		"the file":      func(path string) error { return os.Chmod(path, 0o666) },
		"its directory": func(path string) error { return os.Chmod(filepath.Dir(path), 0o777) },
	} {
		path := lay(t, "secrets: {send: ['*']}\n")
		if err := break_(path); err != nil {
			t.Fatal(err)
		}
		if s, err := Load(); err == nil || len(s.Send) > 0 || !strings.Contains(err.Error(), "chmod") {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}
