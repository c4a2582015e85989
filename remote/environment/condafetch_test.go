package environment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// oneFile is what is served as micromamba: the real one where DLWB_TEST_CONDA names
// it, else a script that makes a prefix whose Python is this machine's.
func oneFile(t *testing.T, exe string) []byte {
	t.Helper()
	if real := os.Getenv("DLWB_TEST_CONDA"); filepath.Base(real) == "micromamba" {
		text, err := os.ReadFile(real)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	return fmt.Appendf(nil, `#!/bin/sh
[ "$1 $2 $4" = "create --prefix --file" ] && [ "$MAMBA_ROOT_PREFIX" = "$HOME/.dlwb/micromamba" ] || exit 2
[ -s "$5" ] && mkdir -p "$3/bin" "$3/conda-meta" && exec ln -s '%s' "$3/bin/python"
`, exe)
}

// server is where micromamba comes from: like GitHub it sends whoever asks on to
// another address. turn says how it goes wrong; empty: not.
func server(t *testing.T, text []byte, turn string) micromamba {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, moved := strings.CutPrefix(r.URL.Path, "/store/")
		switch {
		case turn == "missing" || moved && !strings.HasPrefix(name, "micromamba-linux-"):
			http.NotFound(w, r)
		case !moved:
			http.Redirect(w, r, "/store/"+strings.TrimPrefix(r.URL.Path, "/"), http.StatusFound)
		case turn == "cut":
			w.Header().Set("Content-Length", strconv.Itoa(len(text)))
			_, _ = w.Write(text[:len(text)/2])
		default:
			_, _ = w.Write(text)
		}
	}))
	t.Cleanup(s.Close)
	sum := sha256.Sum256(text)
	m := micromamba{url: s.URL + "/micromamba-", sum64: hex.EncodeToString(sum[:]), sumARM: hex.EncodeToString(sum[:])}
	if turn == "other" {
		m.sum64, m.sumARM = micromambaSum64, micromambaSumARM
	}
	return m
}

// withoutConda is a node that has no conda, and one program that fetches.
func withoutConda(t *testing.T, by string) *local {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{by, "find", "sed", "tr", "flock", "sha256sum", "chmod", "ln"} {
		real, err := exec.LookPath(name)
		if name == "busybox wget" {
			name = "wget"
			real, err = exec.LookPath("busybox")
		}
		if err != nil {
			t.Fatalf("%v: make test installs it", err)
		}
		if err := os.Symlink(real, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	l := newLocal(t, bin)
	if os.Getenv("DLWB_TEST_CONDA") != "" {
		l.env = append(l.env, "CONDA_PKGS_DIRS="+t.TempDir())
	}
	return l
}

var fetchers = []string{"curl", "wget", "busybox wget"}

// A node that has no conda gets micromamba as one file, by whichever program it has,
// and the next environment is made by that file, without a network.
func TestMicromambaIsFetchedAndMakesTheEnvironment(t *testing.T) {
	t.Parallel()
	exe := python(t, "__import__('ensurepip')", "apt-get install python3-venv")
	channel := writeChannel(t, exe)
	for _, by := range fetchers {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			l := withoutConda(t, by)
			l.fetch = server(t, oneFile(t, exe), "")
			spec := condaSpec(channel, "python")
			if r := l.must(spec); r.Python != filepath.Join(l.home, "dlwb/c/conda/bin/python") || r.Skipped {
				t.Errorf("got %+v", r)
			}
			l.fetch = server(t, nil, "missing")
			if r := l.must(spec); !r.Skipped {
				t.Errorf("made again: %+v", r)
			}
			spec.Content += "# changed\n"
			if r := l.must(spec); r.Skipped {
				t.Errorf("not made again: %+v", r)
			}
		})
	}
}

// What is not whole, or not the file that is known, is not run and not kept, and the
// program that fetched says what was wrong.
func TestAMicromambaThatIsCutShortOrAnotherIsNotUsed(t *testing.T) {
	t.Parallel()
	for _, by := range fetchers {
		for turn, want := range map[string]string{"cut": "", "other": "its SHA-256 is another", "missing": "404"} {
			t.Run(by+" "+turn, func(t *testing.T) {
				t.Parallel()
				l := withoutConda(t, by)
				l.fetch = server(t, []byte("#!/bin/sh\ntouch \"$HOME/ran\"\n"+strings.Repeat("# long\n", 10000)), turn)
				f := l.mustFail(Spec{Kind: Conda, Cluster: "c", Content: "dependencies: [python]\n"})
				contains(t, f.Why, "micromamba can't be fetched")
				if contains(t, strings.Join(f.LastLines, "\n"), want); len(f.LastLines) == 0 {
					t.Errorf("nothing says why: %+v", f)
				}
				noFile(t, filepath.Join(l.home, "ran"))
				if left, _ := os.ReadDir(filepath.Join(l.home, ".dlwb/micromamba/bin")); len(left) > 0 {
					t.Errorf("left: %v", left)
				}
			})
		}
	}
}
