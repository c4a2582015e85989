// Package helpers has the pods of a plain Job run what an engine needs beside its ranks,
// as Ray its head and its workers, where no operator does it. Each pod runs serve.py: pod 0
// has the ranks, the others are connected to it, begin when all are there, and end when
// its ranks have ended.
package helpers

import (
	_ "embed" // what each pod runs
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/internal/job"
)

//go:embed serve.py
var serve string

// Port is where the others reach pod 0: below the ports that systems give out by
// themselves, and far from those of the engine.
const Port = 29998

// Node is what one pod runs.
type Node struct {
	Number int    `json:"number"`
	Pods   int    `json:"pods"`
	Head   string `json:"head"` // pod 0, with the port
	Procs  []Proc `json:"procs"`
	files  []cloud.JobFile
}

// Proc is one process of it.
type Proc struct {
	pack.Proc
	Name   string `json:"name"`
	Helper bool   `json:"helper"`
	After  *After `json:"after,omitempty"`
}

// After is what must hold before a process is started: see cloud.JobReady.
type After struct {
	What  string   `json:"what"`
	Argv  []string `json:"argv"`
	Limit int      `json:"limit"`
}

// Needed reports whether a job starts processes beside its ranks itself. One whose service
// starts them for the engine has helpers without the files that these need.
func Needed(j cloud.Job) bool {
	return len(j.Files) > 0 && slices.ContainsFunc(j.Procs, func(p cloud.JobProc) bool { return p.Helper })
}

// Nodes is what each pod runs, with its files below a directory of the pod. hosts are the
// names of the pods, port is the engine's first.
func Nodes(j cloud.Job, dir string, hosts []string, port int) []Node {
	all := make([]Node, j.Replicas)
	for i := range all {
		all[i] = Node{Number: i, Pods: j.Replicas, Head: hosts[0] + ":" + strconv.Itoa(Port)}
		for _, f := range j.Files {
			if f.Replica == i {
				all[i].files = append(all[i].files, f)
			}
		}
	}
	place := job.Placing(hosts, port).Replace
	j.Procs = slices.Clone(j.Procs)
	for i := range j.Procs {
		p := &j.Procs[i]
		own := slices.IndexFunc(p.Argv, func(w string) bool { return strings.HasSuffix(w, "/.dlwb/bin/rank") })
		if own < 0 { // behind that are the user's words
			own = len(p.Argv)
		}
		p.Argv = slices.Concat(all[p.Replica].inDir(p.Argv[:own], j.Run, dir), p.Argv[own:])
	}
	made := pack.Nodes(j, dir, place)
	next := make([]int, j.Replicas) // of the processes of each replica
	for _, p := range j.Procs {
		n := &all[p.Replica]
		one := Proc{Proc: made[p.Replica].Procs[next[p.Replica]], Name: p.Name, Helper: p.Helper}
		next[p.Replica]++
		if p.After != nil {
			one.After = &After{What: p.After.What, Limit: p.After.Limit}
			for _, w := range n.inDir(p.After.Argv, j.Run, dir) {
				one.After.Argv = append(one.After.Argv, place(w))
			}
		}
		n.Procs = append(n.Procs, one)
	}
	return all
}

// inDir puts the files of a pod, which on a node lie in the run's directory, where they
// lie here.
func (n Node) inDir(words []string, run, dir string) (all []string) {
	for _, w := range words {
		for _, f := range n.files {
			w = strings.ReplaceAll(w, "~/.dlwb/runs/"+run+"/"+f.Name, dir+"/"+n.file(f))
		}
		all = append(all, w)
	}
	return all
}

func (n Node) file(f cloud.JobFile) string { return fmt.Sprintf("files/%d/%s", n.Number, f.Name) }

// Pack adds what the pods run to what they are given.
func Pack(a *pack.Archive, nodes []Node) error {
	a.Text("serve.py", serve)
	for i, n := range nodes {
		text, err := json.Marshal(n)
		if err != nil {
			return err
		}
		a.Text(fmt.Sprintf("node/%d.json", i), string(text))
		a.Text(fmt.Sprintf("node/%d.sh", i), "several=yes with=serve.py\n")
		for _, f := range n.files {
			a.Text(n.file(f), f.Text)
		}
	}
	return nil
}

// Told reports whether a pod was told to end before its ranks had ended, with codes of their
// own, as serve.py has left it in the message of its container.
func Told(message string) bool {
	for line := range strings.Lines(message) {
		if strings.HasPrefix(line, "told: ") {
			return true
		}
	}
	return false
}

// Ended is why a pod ended by whose end others lose what serves them, as serve.py has left
// it in the message of its container, or as its code tells where it has no rank; empty:
// nothing of that kind ended it.
func Ended(pod, message string, code, ranks int) string {
	for line := range strings.Lines(message) {
		if why, is := strings.CutPrefix(strings.TrimSpace(line), "helper: "); is {
			return why
		}
	}
	const term = 128 + 15
	if ranks > 0 || code == 0 || code == term {
		return ""
	}
	return fmt.Sprintf("pod %s, which serves the ranks of others, ended with code %d", pod, code)
}
