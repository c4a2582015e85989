//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A profile that is a link to nothing was once said not to be there, and advised
// itself instead.
func TestAProfileThatIsThereAndCanNotBeReadIsNoOtherOne(t *testing.T) {
	dir := t.TempDir()
	for name, to := range map[string]string{"gone.yaml": "../moved/gone.yaml", "self.yaml": "self.yaml", "dlwb.yaml": "elsewhere.yaml", "long.yaml": strings.Repeat("x", 400)} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ arg, want string }{
		{"gone.yaml", "gone.yaml but a link that leads nowhere, to ../moved/gone.yaml"},
		{"self.yaml", "self.yaml but a link that leads nowhere, to self.yaml"},
		{"", "there is no dlwb.yaml in " + dir + " but a link that leads nowhere, to elsewhere.yaml"},
		{"long.yaml", "that can be read: "},
		{"gone.yaml/x.yaml", "did you mean"},
		{strings.Repeat("x", 400) + ".yaml", "that can be read: "},
		{"gona.yaml", "did you mean " + filepath.Join(dir, "gone.yaml")},
	} {
		_, err := profilePath([]string{filepath.Join(dir, c.arg)})
		if err == nil || strings.Contains(err.Error(), c.want) == (c.want == "did you mean") {
			t.Errorf("%q: %v, want %q", c.arg, err, c.want)
		}
	}
}
