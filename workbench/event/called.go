package event

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/pattern"
)

// NodeText is a node in a sentence: "node1 (gpu2)", with what the user calls it, where
// he calls it anything else.
func NodeText(node int, host string) string {
	name := fmt.Sprintf("node%d", node)
	if host == "" || host == name {
		return name
	}
	return name + " (" + host + ")"
}

// Names are what the user calls the nodes of a cluster, by their numbers; empty where
// he calls them nothing else.
type Names []string

// Of is what a node is called.
func (n Names) Of(node int) string {
	if node < 0 || node >= len(n) {
		return ""
	}
	return n[node]
}

var nodeWord = pattern.New(`\bnode(\d+)\b( \([^()]*)?`)

// In is a sentence of dlwb's own with the nodes as the user calls them.
func (n Names) In(text string) string {
	if len(n) == 0 {
		return text
	}
	return nodeWord.ReplaceAllStringFunc(text, func(word string) string {
		said := nodeWord.FindStringSubmatch(word)
		number, err := strconv.Atoi(said[1])
		host := n.Of(number)
		switch inside := strings.TrimPrefix(said[2], " ("); {
		case err != nil || host == "" || NodeText(number, host) == NodeText(number, "") || said[2] != "" && strings.HasPrefix(inside, host):
			return word
		case said[2] == "":
			return NodeText(number, host)
		default:
			return fmt.Sprintf("node%d (%s; %s", number, host, inside)
		}
	})
}

// Fault says in a fault what its node is called.
func (n Names) Fault(f *Fault) {
	if f != nil && f.Host == "" {
		f.Host = n.Of(f.Node)
	}
}

// Body is what an event says, with what the node is called that it is about.
func (n Names) Body(b Body) Body {
	if len(n) == 0 {
		return b
	}
	switch b := b.(type) {
	case StepProgress:
		b.Host = n.Of(b.Node)
		return b
	case StepEnded:
		n.Fault(b.Failure)
	case Failed:
		n.Fault(&b.Fault)
		return b
	case NodeChanged:
		b.Host = n.Of(b.Node)
		return b
	case RunStarted:
		b.Ranks = slices.Clone(b.Ranks)
		for i, r := range b.Ranks {
			b.Ranks[i].Host = n.Of(r.Node)
		}
		return b
	case RankEnded:
		b.Host = n.Of(b.Node)
		return b
	case RunEnded:
		b.Host = n.Of(b.Node)
		return b
	case CheckpointSaved:
		b.Host = n.Of(b.Node)
		return b
	case ResultsLost:
		b.Host = n.Of(b.Node)
		return b
	}
	return b
}

// Roster keeps the names of the nodes of lives.
type Roster struct {
	mu    sync.Mutex
	known map[int64]Names
}

// Of are the names of a life; nodes gives its nodes where they are not known yet.
func (r *Roster) Of(life int64, nodes func() []cloud.Node) Names {
	r.mu.Lock()
	names, known := r.known[life]
	r.mu.Unlock()
	if known || life == 0 {
		return names
	}
	if all := nodes(); len(all) > 0 {
		return r.Note(life, all)
	}
	return nil
}

// Note takes in the nodes of a life.
func (r *Roster) Note(life int64, nodes []cloud.Node) Names {
	var names Names
	if slices.ContainsFunc(nodes, func(n cloud.Node) bool { return n.Called != "" }) {
		for _, n := range nodes {
			names = append(names, n.Called)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[int64]Names{}
	}
	r.known[life] = names
	return names
}
