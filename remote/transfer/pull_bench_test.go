//go:build linux

package transfer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/sshdtest"
	"github.com/dlwb/dlwb/remote"
)

// BenchmarkPull is a pull from connecting to the last file, beside what people
// use for it, each with a connection of its own.
func BenchmarkPull(b *testing.B) {
	for _, c := range []struct {
		name string
		make func(b *testing.B, dir string)
	}{
		{"5000 small files", func(b *testing.B, dir string) {
			text := entropy(1 << 20)
			for i := range 5000 {
				writeFiles(b, dir, map[string]string{fmt.Sprintf("d%d/f%d", i%50, i): text[i*50:][:(i*7919)%9000]})
			}
		}},
		{"500 MB that don't compress", func(b *testing.B, dir string) { writeFiles(b, dir, map[string]string{"model": entropy(500e6)}) }},
		{"500 MB of text", func(b *testing.B, dir string) {
			var text strings.Builder
			for i := 0; text.Len() < 500e6; i++ {
				fmt.Fprintf(&text, "step %d loss %.6f lr 3.0e-04 tokens/s %d\n", i, 10/float64(i+1), 100_000+i*7919%5000)
			}
			writeFiles(b, dir, map[string]string{"log": text.String()})
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := sshdtest.Start(b)
			from := filepath.Join(s.Home, codeDir, "out")
			c.make(b, from)
			makeOld(b, from)
			for name, pull := range pullers(s, from) {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						b.StopTimer()
						dest := b.TempDir()
						b.StartTimer()
						pull(b, dest)
						b.StopTimer()
						check(b, os.RemoveAll(dest))
						b.StartTimer()
					}
				})
			}
		})
	}
}

func pullers(s *sshdtest.Server, from string) map[string]func(b *testing.B, dest string) {
	host, port, _ := strings.Cut(s.Addr, ":")
	ssh := []string{"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-i", s.KeyFile}
	run := func(b *testing.B, name string, args ...string) {
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			b.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	return map[string]func(b *testing.B, dest string){
		"dlwb": func(b *testing.B, dest string) {
			n := remote.Open(targetOf(s))
			defer n.Close()
			if res, err := Pull(b.Context(), n, codeDir, []string{"out"}, dest, PullLimits{}); err != nil || len(res.Skipped) > 0 {
				b.Fatal(res, err)
			}
		},
		"rsync": func(b *testing.B, dest string) {
			run(b, "rsync", "-a", "-e", "ssh -p "+port+" "+strings.Join(ssh, " "), s.User+"@"+host+":"+from, dest)
		},
		"scp": func(b *testing.B, dest string) {
			run(b, "scp", append(append([]string{"-q", "-r", "-p", "-P", port}, ssh...), s.User+"@"+host+":"+from, dest)...)
		},
	}
}
