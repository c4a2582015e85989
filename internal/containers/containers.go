// Package containers removes a cluster's containers from the machine that it is called on,
// also those that were made and never began: nothing that runs belongs to them.
package containers

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Gone is the program in the directory of an image that removes the containers that were
// made of it on this machine, and prints those that stay, a line each.
const Gone = "gone"

// limit bounds the removal of one image's containers: an engine that is busy takes its time.
const limit = 2 * time.Minute

// A StayError names the containers that are there after their removal.
type StayError []string

func (e StayError) Error() string {
	return "containers are left that could not be removed: " + strings.Join(e, ", ")
}

// Remove removes the containers of the cluster whose directory this is, with the
// environment that is given; nil: this process's. images is how many images the cluster
// has here. After an error that is no StayError it is not known whether containers are left.
func Remove(ctx context.Context, dir string, env []string) (images int, err error) {
	programs, err := filepath.Glob(filepath.Join(dir, "container*", Gone))
	if err != nil {
		return 0, fmt.Errorf("look for images in %s: %w", dir, err)
	}
	for _, program := range programs {
		err = errors.Join(err, remove(ctx, program, env))
	}
	return len(programs), err
}

func remove(ctx context.Context, program string, env []string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := exec.CommandContext(ctx, program)
	c.Dir, c.Env, c.WaitDelay = "/", env, time.Second
	out, err := c.Output()
	if left := strings.TrimSpace(string(out)); err == nil && left != "" {
		return StayError(strings.Split(left, "\n"))
	}
	if err == nil {
		return nil
	}
	why := err.Error()
	var exit *exec.ExitError
	if ctx.Err() != nil {
		why = "there was no answer for " + limit.String()
	} else if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		said := strings.TrimSpace(string(exit.Stderr))
		why = said[strings.LastIndexByte(said, '\n')+1:]
	}
	return fmt.Errorf("whether containers are left is not known: %s", why)
}
