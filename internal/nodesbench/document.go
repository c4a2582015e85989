package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// The marks between which a document holds the table.
const (
	tableBegins = "<!-- the table: make bench-nodes -->"
	tableEnds   = "<!-- end of the table -->"
)

// document writes the table into a file that has the marks.
func (b *bench) document(path string, took time.Duration) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(text), tableBegins)
	_, tail, end := strings.Cut(rest, tableEnds)
	if !ok || !end {
		return fmt.Errorf("%s has no place for the table: %s … %s", path, tableBegins, tableEnds)
	}
	return os.WriteFile(path, []byte(head+tableBegins+"\n"+b.table(took)+tableEnds+tail), 0o644)
}

func (b *bench) table(took time.Duration) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s, in %s; %s.\n\n", time.Now().Format("2006-01-02"), took.Round(time.Minute), machine())
	group := ""
	for _, f := range b.figures {
		g, name, _ := strings.Cut(f.Name, "/")
		if g != group {
			fmt.Fprintf(&out, "\n| %s | | target | |\n|---|---:|---:|---|\n", g)
			group = g
		}
		switch {
		case f.Missing != "":
			fmt.Fprintf(&out, "| %s | | %s | not run: %s |\n", name, f.Target, strings.ReplaceAll(strings.Join(strings.Fields(f.Missing), " "), "|", "/"))
		case f.Target == "":
			fmt.Fprintf(&out, "| %s | %s %s | | |\n", name, number(f.Value), f.Unit)
		default:
			fmt.Fprintf(&out, "| %s | %s %s | %s | %s |\n", name, number(f.Value), f.Unit, f.Target, f.verdict())
		}
	}
	return out.String()
}

// machine says what the figures were taken on.
func machine() string {
	parts := []string{fmt.Sprintf("%d cores of %s", runtime.NumCPU(), field("/proc/cpuinfo", "model name"))}
	if kib := strings.Fields(field("/proc/meminfo", "MemTotal")); len(kib) > 0 {
		parts = append(parts, kib[0]+" KiB of memory")
	}
	for _, version := range [][]string{{"uname", "-sr"}, {"ssh", "-V"}, {"ansible", "--version"}, {"rsync", "--version"}} {
		out, err := exec.Command(version[0], version[1:]...).CombinedOutput()
		if line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n"); err == nil {
			parts = append(parts, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(append(parts, runtime.Version()), ", ")
}

// field is a value of a file of names and values.
func field(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
