package inputs

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // the script that fetches
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/secretfile"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/workbench/event"
)

// fetchScript downloads one address with Python's own library: it is there where
// curl and wget are not.
//
//go:embed scripts/fetch.py
var fetchScript string

// stamp says what a node has of a channel that was fetched.
type stamp struct {
	URL       string `json:"url"`
	SHA256    string `json:"sha256"`
	Bytes     int64  `json:"bytes"`
	File      string `json:"file"`            // empty: it is a set of files
	Files     int    `json:"files,omitempty"` // of a set
	Unchanged bool   `json:"unchanged,omitempty"`
}

func (s Site) stampPath(c Channel) string { return Dir(s.Cluster) + "/.stamps/" + c.Name + ".json" }

// fetch has node 0 read an address and gives what came to the others.
func (s Site) fetch(ctx context.Context, c Channel) (text string, unchanged bool, err error) {
	got, err := s.fetchOn(ctx, 0, c)
	if err != nil {
		return "", false, err
	}
	lacking := s.lacking(ctx, c, got)
	if err := s.pass(ctx, c, got, lacking); err != nil {
		return "", false, err
	}
	text = units.Bytes(got.Bytes)
	switch {
	case got.Unchanged && len(lacking) == 0:
		return "unchanged, " + text, true, nil
	case got.Unchanged:
		text = "unchanged at its address, " + text
	default:
		text += " fetched by node0"
	}
	if len(lacking) > 0 {
		text += fmt.Sprintf(", passed on to %s", units.Count(len(lacking), "node"))
	}
	return text, false, nil
}

// fetchSilent is how long the script may say nothing: it speaks every two seconds.
const fetchSilent = 3 * time.Minute

// fetching is the line of sh that fetches a channel, and the program that it reads. The
// address is in that: everybody on a machine sees the words of a command, and a signed
// address lets its holder in.
func (s Site) fetching(node int, c Channel) (line, program string) {
	words := append(s.Python(node), "-", secretfile.Address(c.From), s.dir(c), s.stampPath(c), fileName(c.From), c.SHA256, strconv.FormatInt(c.Most, 10))
	address, _ := json.Marshal(c.From) // of a string there is no error
	return "exec " + shellword.Join(words...), fmt.Sprintf("import sys\nsys.argv[1] = %s\n%s", address, fetchScript)
}

// fetchOn has one node read the address.
func (s Site) fetchOn(ctx context.Context, node int, c Channel) (stamp, error) {
	shown := secretfile.Address(c.From)
	fault := &event.Fault{What: "fetch the channel " + c.Name, Node: node, Command: shown}
	line, program := s.fetching(node, c)
	if c.inS3() {
		var err error
		if line, program, err = s.gathering(ctx, node, c); err != nil {
			f := cloud.FromError("", err, "aws s3 ls "+c.From)
			fault.Node, fault.Why, fault.Next = -1, f.Text, f.Next
			return stamp{}, fault
		}
	}
	var errs tail
	heard := &lineWriter{line: func(text string) {
		text = strings.ReplaceAll(text, c.From, shown)
		if news, is := strings.CutPrefix(text, "progress "); is {
			s.Say(node, c.Name+": "+news)
			return
		}
		errs.add(text)
	}}
	r, err := s.Nodes[node].Exec(ctx, remote.Cmd{Line: line, Stdin: strings.NewReader(program), Stderr: heard, Quiet: fetchSilent})
	if err != nil {
		fault.Why = err.Error()
		return stamp{}, fault
	}
	var got stamp
	if r.ExitCode == 0 {
		err = json.Unmarshal(r.Stdout, &got)
		if err == nil && (got.URL != c.From || got.File != c.file() || got.Bytes < 0) {
			err = errors.New("the node told of another address")
		}
		if err == nil {
			return got, nil
		}
		fault.Why = err.Error()
		return stamp{}, fault
	}
	fault.LastLines = errs.lines[:max(0, len(errs.lines)-1)]
	fault.Why, fault.Next = whyOf(r, errs.lines), "what came of it is gone on with; if node0 can't reach it, fetch it here and name its path"
	return stamp{}, fault
}

func whyOf(r remote.Result, lines []string) string {
	if len(lines) > 0 {
		return lines[len(lines)-1]
	}
	return fmt.Sprintf("it exited with %d and said nothing", r.ExitCode)
}

var unsafeName = pattern.New(`[^A-Za-z0-9._-]+`)

// fileName is the name of the file that an address leads to.
func fileName(address string) string {
	name := "data"
	if u, err := url.Parse(address); err == nil {
		name = path.Base(u.Path)
	}
	name = strings.TrimLeft(unsafeName.ReplaceAllString(name, "_"), ".")
	if name == "" || name == "/" || name == "_" {
		return "data"
	}
	return name[:min(len(name), 100)]
}

// file is the name of the file that a channel is; empty: it is a set of files.
func (c Channel) file() string {
	if c.inS3() {
		return ""
	}
	return fileName(c.From)
}

// lacking are the nodes behind node 0 that do not have what it has.
func (s Site) lacking(ctx context.Context, c Channel, got stamp) (nodes []int) {
	for i := 1; i < len(s.Nodes); i++ {
		if !s.Disks.FirstAtCode(i) { // what an earlier node has is there
			continue
		}
		count, size := "wc -c <"+shellword.Quote(s.dir(c)+"/"+got.File), fmt.Sprint(got.Bytes)
		if got.File == "" {
			count, size = "find "+shellword.Quote(s.dir(c))+" -type f | wc -l", fmt.Sprint(got.Files)
		}
		line := fmt.Sprintf("cat %s 2>/dev/null; echo; %s", shellword.Quote(s.stampPath(c)), count)
		r, err := s.Nodes[i].Exec(ctx, remote.Cmd{Line: line})
		var has stamp
		text, counted, _ := strings.Cut(strings.TrimSpace(string(r.Stdout)), "\n")
		if err != nil || json.Unmarshal([]byte(text), &has) != nil || has.SHA256 != got.SHA256 || strings.TrimSpace(counted) != size {
			nodes = append(nodes, i)
		}
	}
	return nodes
}

// pass gives what node 0 fetched to nodes that lack it. One that can't be reached
// from there fetches it itself.
func (s Site) pass(ctx context.Context, c Channel, got stamp, nodes []int) error {
	if len(nodes) == 0 {
		return nil
	}
	var places []transfer.Place
	for _, i := range nodes {
		s.Say(i, c.Name+": from node0")
		places = append(places, transfer.Place{Node: s.Nodes[i], Dir: s.dir(c)})
	}
	got.Unchanged = false
	text, err := json.Marshal(got)
	if err != nil {
		return err
	}
	errs := transfer.Share(ctx, transfer.Place{Node: s.Nodes[0], Dir: s.dir(c)}, places, got.Bytes+int64(got.Files)<<12+1<<20)
	for k, i := range nodes {
		if errs[k] != nil {
			s.Say(i, c.Name+": node0 could not pass it on: "+errs[k].Error())
			own, err := s.fetchOn(ctx, i, c)
			if err == nil && own.SHA256 != got.SHA256 {
				err = &event.Fault{What: "fetch the channel " + c.Name, Node: i, Why: "it got another file than node0: the address changes", Next: "name its sha256, or fetch it here and name its path"}
			}
			if err != nil {
				return err
			}
			continue
		}
		if err := s.writeStamp(ctx, i, c, text); err != nil {
			return err
		}
	}
	return nil
}

func (s Site) writeStamp(ctx context.Context, node int, c Channel, text []byte) error {
	at := shellword.Quote(s.stampPath(c))
	line := fmt.Sprintf("mkdir -p %s && cat >%s.new && mv %s.new %s", shellword.Quote(path.Dir(s.stampPath(c))), at, at, at)
	r, err := s.Nodes[node].Exec(ctx, remote.Cmd{Line: line, Stdin: bytes.NewReader(text)})
	if err == nil && r.ExitCode != 0 {
		err = fmt.Errorf("%s", strings.TrimSpace(string(r.Stderr)))
	}
	if err != nil {
		return &event.Fault{What: "note what channel " + c.Name + " has", Node: node, Why: err.Error()}
	}
	return nil
}

// tail keeps the last lines of what a program said.
type tail struct{ lines []string }

func (t *tail) add(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	t.lines = append(t.lines[max(0, len(t.lines)-9):], text)
}

// lineWriter hands on whole lines.
type lineWriter struct {
	line func(string)
	rest []byte
}

// Write takes a part of the text.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			break
		}
		w.line(string(bytes.TrimRight(w.rest[:i], "\r")))
		w.rest = w.rest[i+1:]
	}
	if len(w.rest) > bufio.MaxScanTokenSize {
		w.rest = w.rest[:0]
	}
	return len(p), nil
}
