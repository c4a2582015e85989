package userdata

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"mime/multipart"
	"net/textproto"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mergeType tells cloud-init how to take a further document in: lists grow, and
// what is there already stays. The lease stands in bootcmd, and must not go.
// https://cloudinit.readthedocs.io/en/latest/reference/merging.html
const mergeType = "list(append)+dict(no_replace,recurse_list)+str()"

// own are keys by which a document would undo what dlwb says: how it is merged,
// and who is let in.
var ownKeys = []string{"merge_how", "merge_type", "ssh_keys", "ssh_deletekeys", "ssh_pwauth", "disable_root", "users", "ssh_authorized_keys", "cloud_init_modules", "cloud_config_modules", "cloud_final_modules"}

// withMore is a document of several parts: dlwb's own, and what the user adds.
func withMore(text, more string) (string, error) {
	kind := "text/x-shellscript"
	if !strings.HasPrefix(more, "#!") {
		kind = "text/cloud-config"
		if err := checkMore(more); err != nil {
			return "", err
		}
	}
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	if err := w.SetBoundary("==dlwb=" + boundary(text+more)); err != nil {
		return "", err
	}
	for _, part := range []struct{ kind, name, text string }{{"text/cloud-config", "dlwb.cfg", text}, {kind, "more", more}} {
		h := textproto.MIMEHeader{"Content-Type": {part.kind + `; charset="utf-8"`}, "Mime-Version": {"1.0"},
			"Content-Transfer-Encoding": {"8bit"}, "Content-Disposition": {`attachment; filename="` + part.name + `"`}}
		if part.name != "dlwb.cfg" {
			h.Set("Merge-Type", mergeType)
		}
		to, err := w.CreatePart(h)
		if err != nil {
			return "", err
		}
		if _, err := to.Write([]byte(strings.TrimRight(part.text, "\n") + "\n")); err != nil {
			return "", err
		}
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return "Content-Type: multipart/mixed; boundary=\"" + w.Boundary() + "\"\nMIME-Version: 1.0\n\n" + strings.ReplaceAll(out.String(), "\r\n", "\n"), nil
}

// checkMore refuses a document that cloud-init would not read, or that would undo
// what dlwb says.
func checkMore(more string) error {
	if first, _, _ := strings.Cut(more, "\n"); strings.TrimSpace(first) != "#cloud-config" {
		return errors.New("machines.user_data is neither a script (#!) nor a document of cloud-init (#cloud-config)")
	}
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(more), &doc); err != nil {
		return fmt.Errorf("machines.user_data is no YAML: %w", err)
	}
	for _, key := range ownKeys {
		if _, has := doc[key]; has {
			return fmt.Errorf("machines.user_data sets %s, which dlwb needs for itself: leave it out", key)
		}
	}
	return nil
}

// boundary is a line that a text can't hold.
func boundary(text string) string {
	return strings.TrimPrefix(endOf(text), "END_")
}

// pack compresses what is too long as it is: cloud-init unpacks it.
func pack(text string) []byte {
	var out bytes.Buffer
	w, _ := gzip.NewWriterLevel(&out, gzip.BestCompression) // the level is a right one
	_, _ = w.Write([]byte(text))
	_ = w.Close() // memory takes everything
	return out.Bytes()
}
