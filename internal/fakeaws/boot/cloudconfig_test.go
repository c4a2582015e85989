package boot

import (
	"reflect"
	"strings"
	"testing"
)

func TestACloudConfigIsReadAsCloudInitReadsIt(t *testing.T) {
	got, err := parse([]byte(`#cloud-config
ssh_authorized_keys: [one]
users:
- default
- {name: me, ssh_authorized_keys: [two]}
ssh_keys: {ed25519_private: secret, ed25519_public: open}
bootcmd:
- echo a b
- [echo, "it's", 7]
write_files:
- {path: /a, content: text}
- {path: /b, encoding: gz+b64, permissions: '0755', append: true, content: H4sIAAAAAAAAA8tIzcnJBwCGphA2BQAAAA==}
ssh_pwauth: false
`))
	if err != nil {
		t.Fatal(err)
	}
	want := config{
		User: "me", Host: hostKey{"secret", "open"}, Early: "echo a b\n'echo' 'it'\\''s' '7'\n",
		Files: []file{{"/a", []byte("text"), 0o644, false}, {"/b", []byte("hello"), 0o755, true}},
	}
	if len(got.Keys) != 2 {
		t.Errorf("the keys are %q", got.Keys)
	}
	got.Keys = nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestUserDataThatIsNoCloudConfig(t *testing.T) {
	if got, err := parse([]byte("#!/bin/sh\necho hello\n")); err != nil || got.Late != "#!/bin/sh\necho hello\n" {
		t.Errorf("a script: %+v, %v", got, err)
	}
	if got, err := parse(nil); err != nil || !reflect.DeepEqual(got, config{}) {
		t.Errorf("none: %+v, %v", got, err)
	}
	for text, why := range map[string]string{
		"hello":                       "cloud-init would ignore it",
		"#cloud-config\n\truncmd: [":  "read the cloud-config",
		"#cloud-config\nruncmd: word": "runcmd",
		"#cloud-config\nwrite_files:\n- {path: /a, encoding: b64, content: '!'}":       "/a: illegal base64",
		"#cloud-config\nwrite_files:\n- {path: /a, encoding: rot13, content: x}":       `"rot13" is not known`,
		"#cloud-config\nwrite_files:\n- {path: /a, permissions: 'rwx', content: what}": "no octal number",
	} {
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v, want %q", text, err, why)
		}
	}
}
