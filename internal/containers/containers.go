// Package containers removes a cluster's containers from the machine that it is called on,
// also those that were made and never began: nothing that runs belongs to them.
package containers

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/apart"
	"github.com/dlwb/dlwb/internal/units"
)

// Gone is the program in the directory of an image that removes the containers that were
// made of it on this machine, and prints those that stay, a line each.
const Gone = "gone"

// Prefix is what the name of an image's directory begins with, in that of its cluster.
const Prefix = "container"

// Proof says why no container of a cluster is left on a machine where it had some.
const Proof = "no container has the label of this cluster"

// limit bounds the removal of one image's containers: an engine that is busy takes its time.
const limit = 2 * time.Minute

// A LeftError says that containers are there after their removal, or that this is not
// known.
type LeftError struct {
	Containers []string // by id and status
	Why        string   // it is not known whether more are there; empty: none are
}

func (e *LeftError) Error() string {
	var parts []string
	if len(e.Containers) > 0 {
		parts = append(parts, "containers that could not be removed: "+strings.Join(e.Containers, ", "))
	}
	if e.Why != "" {
		parts = append(parts, "whether containers are left is not known: "+e.Why)
	}
	return strings.Join(parts, "; ")
}

// Remove removes the containers of the cluster whose directory this is, with the
// environment that is given; nil: this process's. It reports whether an engine was asked,
// as it is where the cluster has an image; left is nil where no container is left.
func Remove(ctx context.Context, dir string, env []string) (has bool, left *LeftError) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, &LeftError{Why: err.Error()}
	}
	var all LeftError
	for _, e := range entries {
		program := filepath.Join(dir, e.Name(), Gone)
		if _, err := os.Stat(program); !strings.HasPrefix(e.Name(), Prefix) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		asked, stay, why := remove(ctx, program, env)
		has = has || asked
		if all.Containers = append(all.Containers, stay...); why != "" {
			all.Why = why
		}
	}
	if len(all.Containers) > 0 || all.Why != "" {
		left = &all
	}
	return has, left
}

// noEngine is how the program ends where the engine is not there any more, as a shell that
// finds no such command does.
const noEngine = 127

// remove removes the containers of one image, if its engine is there to be asked; why says
// that it is not known which stay.
func remove(ctx context.Context, program string, env []string) (asked bool, stay []string, why string) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := exec.CommandContext(ctx, program)
	c.Dir, c.Env, c.WaitDelay = "/", env, time.Second
	apart.Set(c)
	c.Cancel = func() error { // also the engine's own programs
		apart.Kill(c)
		return nil
	}
	out, err := c.Output()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true, strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), ""
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return true, nil, "there was no answer for " + units.Duration(limit)
	case errors.As(err, &exit) && exit.ExitCode() == noEngine && len(exit.Stderr) == 0:
		return false, nil, ""
	case errors.As(err, &exit) && len(exit.Stderr) > 0:
		said := strings.TrimSpace(string(exit.Stderr))
		return true, nil, said[strings.LastIndexByte(said, '\n')+1:]
	}
	return true, nil, err.Error()
}
