// Command serve runs the fake EC2 for people: its instances are machines on
// this one. It prints what to paste into a shell, so that dlwb uses it, and
// removes everything when it is interrupted. Meanwhile it reads commands, a line
// each, that do what AWS does to people: take a spot instance back, crash one,
// fill a zone; help lists them.
//
//	go run ./internal/fakeaws/serve [-dlwb PATH] [-gpus=false]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/dlwb/dlwb/cloud/ec2/catalog"
	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/fakeaws/boot"
	"github.com/dlwb/dlwb/internal/shellword"
)

func main() {
	dlwb := flag.String("dlwb", "", "the dlwb binary that machines are made of; built from here when empty")
	gpus := flag.Bool("gpus", true, "machines have simulated GPUs, as many as their type")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "serve runs an EC2 whose instances are machines on this one.")
		flag.PrintDefaults()
		fmt.Fprint(flag.CommandLine.Output(), "While it runs, these lines can be typed:\n"+usage())
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, os.Stdin, os.Stdout, *dlwb, *gpus); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

// serve runs the fake until the context ends, and then says what was left.
func serve(ctx context.Context, in io.Reader, out io.Writer, dlwb string, gpus bool) (err error) {
	if dlwb == "" {
		dir, err := os.MkdirTemp("", "dlwb-serve-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if dlwb, err = build(ctx, dir); err != nil {
			return err
		}
	}
	if dlwb, err = filepath.Abs(dlwb); err != nil {
		return err
	}
	o := boot.Options{Exe: dlwb}
	if gpus {
		o.GPUs = gpusOf
	}
	rig, err := boot.New(o)
	if err != nil {
		return err
	}
	s := fakeaws.New(fakeaws.Options{Boot: rig})
	fmt.Fprint(out, paste(s.Env(), rig.SSHPort()))
	go console{s, out}.read(in) // ends with its input, or with the process
	<-ctx.Done()
	left := s.Left()
	s.Close()
	err = rig.Close()
	fmt.Fprintf(out, "\n%d resources were left when this ended; they are removed now\n", len(left))
	for _, what := range left {
		fmt.Fprintln(out, " ", what)
	}
	return err
}

// build makes a dlwb of the source that this was started in.
func build(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "dlwb")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "github.com/dlwb/dlwb")
	said, err := cmd.CombinedOutput()
	if err != nil {
		return "", errors.Join(fmt.Errorf("build dlwb (or name one with -dlwb): %w", err), errors.New(string(said)))
	}
	return path, nil
}

// gpusOf is how many GPUs a type has.
func gpusOf(instanceType string) int {
	for _, offer := range catalog.Builtin("us-east-1") {
		if offer.Instance == instanceType {
			return offer.GPUs
		}
	}
	return 0
}

// paste is what leads dlwb here: for a shell, and for a profile.
func paste(env []string, port int) string {
	var text strings.Builder
	fmt.Fprintln(&text, "# An EC2 that costs nothing. In the shell that dlwb is used in:")
	for _, entry := range append(env, "DLWB_SETTLE=2s", "DLWB_SOURCE_ADDRESS=127.0.0.1") {
		name, value, _ := strings.Cut(entry, "=")
		fmt.Fprintf(&text, "export %s=%s\n", name, shellword.Quote(value))
	}
	fmt.Fprintf(&text, "# In the profile, with provider: ec2\n#   machines:\n#     ssh_port: %d\n", port)
	fmt.Fprintln(&text, "# Ctrl-C ends it and removes every machine. Lines that can be typed here meanwhile:")
	for line := range strings.Lines(usage()) {
		text.WriteString("#" + line)
	}
	return text.String()
}
