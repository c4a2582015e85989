package engine

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// lightningVars are what Lightning reads where ranks are started for it.
var lightningVars = append(slices.Clone(rankVars), "GROUP_RANK", "TORCHELASTIC_RUN_ID")

// lightning starts every rank itself. Lightning would start the ranks of a node
// from a first one, which then had no logs and no ends of their own; and where
// it believes that torchrun has started them, by TORCHELASTIC_RUN_ID, it holds
// devices times num_nodes of the Trainer against WORLD_SIZE and says so when they
// differ, instead of waiting for ranks that nobody starts. WORLD_SIZE counts
// processes there, and GROUP_RANK is the node; versions before 1.6 read NODE_RANK.
func lightning(l layout) [][]Proc {
	return l.eachRank(func(node, local int) []string {
		return append(l.rankEnv(node, local), "GROUP_RANK="+strconv.Itoa(node), "TORCHELASTIC_RUN_ID="+l.job.Run)
	})
}

// counted is a number that a Trainer is told, and by which words.
type counted struct {
	keys  []string // as scripts and configurations call it; the first is today's
	value int
}

// fillLightning tells the script how many nodes and devices there are, where it
// can be told and the user has not: by an override of Hydra, by an argument that
// the script declares, or by those of LightningCLI.
func fillLightning(l *layout) []string {
	counts := []counted{{[]string{"num_nodes"}, len(l.nodes)}, {[]string{"devices", "gpus"}, l.procs[0]}}
	for _, n := range l.procs {
		if n != l.procs[0] {
			counts = counts[:1] // a Trainer has the same number on all nodes
			break
		}
	}
	var added []string
	for _, c := range counts {
		if word := l.fillWord(c); word != "" {
			added = append(added, word)
		}
	}
	if len(added) == 0 {
		return nil
	}
	l.command = append(l.command, added...)
	return []string{"added to the command: " + Join(added)}
}

// fillWord is the argument that tells a count; empty where the script can't be
// told, or is.
func (l *layout) fillWord(c counted) string {
	script := l.script()
	hydra := hydraMain.MatchString(script)
	for _, key := range c.keys {
		if isGiven(l.command, key) {
			return ""
		}
	}
	for _, key := range c.keys {
		if key == "gpus" && !l.hasGPUs() {
			continue
		}
		switch {
		case hydra:
			if at := l.configKey(script, key); at != "" {
				return fmt.Sprintf("%s=%d", at, c.value)
			}
		case cliMain.MatchString(script):
			if key == c.keys[0] {
				return fmt.Sprintf("--trainer.%s=%d", key, c.value)
			}
		default:
			if flag := declared(script, key); flag != "" {
				return fmt.Sprintf("%s=%d", flag, c.value)
			}
		}
	}
	return ""
}

var (
	hydraMain   = pattern.New(`@hydra\.main\b|@main\(.*config_(path|name)`)
	cliMain     = pattern.New(`\bLightningCLI\(`)
	configNamed = pattern.New(`config_name\s*=\s*["']([^"'\n]+)["']`)
	configIn    = pattern.New(`config_path\s*=\s*["']([^"'\n]+)["']`)
	yamlKey     = pattern.New(`^( *)([A-Za-z_][A-Za-z0-9_]*):(.*)$`)
	defaultsOf  = pattern.New(`^\s*-\s*(?:override\s+)?/?([A-Za-z0-9_/]+)\s*:\s*([A-Za-z0-9_./-]+)\s*$`)
)

// multirun notes that Hydra is to run several jobs. Its ranks have one address for
// all of them, and one rank that is late meets the next job of the others.
func (l *layout) multirun() []string {
	for _, w := range l.command {
		if (w == "-m" || w == "--multirun") && l.world > 1 && hydraMain.MatchString(l.script()) && strings.HasSuffix(l.command[slices.Index(l.command, w)-1], ".py") {
			return []string{w + " of Hydra runs its jobs one after the other, in all ranks; dlwb sweep runs each as a trial, with its own ranks, record and results"}
		}
	}
	return nil
}

// script is the text of the training script.
func (l *layout) script() string {
	for _, w := range l.command {
		if text, ok := l.job.Sources[path.Clean(w)]; ok && strings.HasSuffix(w, ".py") {
			return text
		}
	}
	return ""
}

// isGiven reports whether the user says a key by any of its forms: key=1,
// +trainer.key=1, --key 1, --trainer.key=1.
func isGiven(command []string, key string) bool {
	return slices.ContainsFunc(command, func(w string) bool {
		name, _, _ := strings.Cut(strings.TrimLeft(w, "-+~"), "=")
		name = name[strings.LastIndexByte(name, '.')+1:]
		return strings.ReplaceAll(name, "-", "_") == key && (strings.Contains(w, "=") || strings.HasPrefix(w, "-"))
	})
}

// declared is the argument by which a script with argparse, click or typer is
// told a key; empty where it declares none.
func declared(script, key string) string {
	for _, flag := range []string{"--" + key, "--" + strings.ReplaceAll(key, "_", "-")} {
		if regexp.MustCompile(`["']` + flag + `["']`).MatchString(script) {
			return flag
		}
	}
	return ""
}

// configKey is the place of a key in the configuration of a Hydra application,
// such as trainer.num_nodes: in the main file, or in one that its defaults list
// names. The one that lies least deep counts.
func (l *layout) configKey(script, key string) string {
	dir, name := ".", "config"
	for _, w := range l.command {
		if strings.HasSuffix(w, ".py") {
			dir = path.Dir(w)
		}
	}
	if m := configIn.FindStringSubmatch(script); m != nil {
		dir = path.Join(dir, m[1])
	}
	if m := configNamed.FindStringSubmatch(script); m != nil {
		name = strings.TrimSuffix(m[1], ".yaml")
	}
	text := l.source(path.Join(dir, name))
	found := keysIn(text, "", key)
	for line := range strings.Lines(text) {
		if m := defaultsOf.FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
			group := strings.ReplaceAll(m[1], "/", ".")
			found = append(found, keysIn(l.source(path.Join(dir, m[1], m[2])), group, key)...)
		}
	}
	slices.SortStableFunc(found, func(a, b string) int { return strings.Count(a, ".") - strings.Count(b, ".") })
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

func (l *layout) source(name string) string {
	for _, ending := range []string{"", ".yaml", ".yml"} {
		if text, ok := l.job.Sources[path.Clean(name+ending)]; ok {
			return text
		}
	}
	return ""
}

// keysIn are the places of a key in a file of YAML in block style, below a group.
func keysIn(text, group, key string) []string {
	type level struct {
		indent int
		name   string
	}
	var open []level
	var found []string
	for line := range strings.Lines(text) {
		m := yamlKey.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		for len(open) > 0 && open[len(open)-1].indent >= len(m[1]) {
			open = open[:len(open)-1]
		}
		open = append(open, level{len(m[1]), m[2]})
		if m[2] != key {
			continue
		}
		place := []string{}
		if group != "" {
			place = append(place, group)
		}
		for _, o := range open {
			place = append(place, o.name)
		}
		found = append(found, strings.Join(place, "."))
	}
	return found
}
