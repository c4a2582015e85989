package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
)

// console carries out what is typed: what AWS does to people, when one wants to
// see it.
type console struct {
	s   *fakeaws.Server
	out io.Writer
}

// command is one of the words that can be typed.
type command struct {
	name, args, help string
	do               func(c console, args []string) error
}

// commands is filled below: help lists it.
var commands []command

func init() {
	commands = []command{
		{"ls", "", "the instances that run", console.list},
		{"reclaim", "ID|all [NOTICE]", "take a spot instance back after its notice (2m; 10s is a short one)", console.reclaim},
		{"crash", "ID|all", "end an instance as when its host fails, without a notice", console.crash},
		{"fill", "ZONE TYPE [N]", "let a zone have room for N (0) instances of a type, on demand and spot", console.fill},
		{"free", "ZONE TYPE", "let it have room again", console.free},
		{"help", "", "these lines", console.help},
	}
}

// usage is what can be typed, a line each.
func usage() string {
	var text strings.Builder
	for _, c := range commands {
		fmt.Fprintf(&text, "  %-24s %s\n", strings.TrimSpace(c.name+" "+c.args), c.help)
	}
	return text.String()
}

// read carries out lines until there are no more.
func (c console) read(in io.Reader) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		if err := c.run(words); err != nil {
			fmt.Fprintln(c.out, err)
		}
	}
}

func (c console) run(words []string) error {
	i := slices.IndexFunc(commands, func(k command) bool { return k.name == words[0] })
	if i < 0 {
		return fmt.Errorf("%s is no command; there are:\n%s", words[0], strings.TrimSuffix(usage(), "\n"))
	}
	err := commands[i].do(c, words[1:])
	if errors.Is(err, errArgs) {
		return fmt.Errorf("type %s %s", commands[i].name, commands[i].args)
	}
	return err
}

// errArgs says that a command was typed in another way than it is meant.
var errArgs = errors.New("wrong arguments")

func (c console) help([]string) error {
	_, err := fmt.Fprint(c.out, usage())
	return err
}

func (c console) list([]string) error {
	running := c.s.Running()
	for _, i := range running {
		market := "on demand"
		if i.Spot {
			market = "spot"
		}
		fmt.Fprintf(c.out, "%s  %s  %s  %s  %s\n", i.ID, i.Zone, i.Type, market, i.State)
	}
	if len(running) == 0 {
		fmt.Fprintln(c.out, "no instance runs")
	}
	return nil
}

// named are the running instances of an id, or all.
func (c console) named(id string, spot bool) ([]fakeaws.Seen, error) {
	var found []fakeaws.Seen
	for _, i := range c.s.Running() {
		switch {
		case i.ID == id && spot && !i.Spot:
			return nil, fmt.Errorf("%s is on demand: only spot instances are taken back; crash ends it", id)
		case i.ID == id || id == "all" && (i.Spot || !spot):
			found = append(found, i)
		}
	}
	if len(found) == 0 && id != "all" {
		return nil, fmt.Errorf("no instance %s runs; ls lists those that do", id)
	}
	if len(found) == 0 {
		return nil, errors.New("no such instance runs; ls lists those that do")
	}
	return found, nil
}

func (c console) reclaim(args []string) error {
	notice := 2 * time.Minute // as AWS gives
	if len(args) == 2 {
		var err error
		if notice, err = time.ParseDuration(args[1]); err != nil || notice < 0 {
			return fmt.Errorf("%s is no duration such as 2m or 10s", args[1])
		}
	}
	if len(args) != 1 && len(args) != 2 {
		return errArgs
	}
	found, err := c.named(args[0], true)
	for _, i := range found {
		c.s.Reclaim(i.ID, notice)
		fmt.Fprintf(c.out, "%s is told that it is taken back, and ends in %s\n", i.ID, notice)
	}
	return err
}

func (c console) crash(args []string) error {
	if len(args) != 1 {
		return errArgs
	}
	found, err := c.named(args[0], false)
	for _, i := range found {
		c.s.Crash(i.ID)
		fmt.Fprintf(c.out, "%s has crashed\n", i.ID)
	}
	return err
}

func (c console) fill(args []string) error {
	if len(args) != 2 && len(args) != 3 {
		return errArgs
	}
	n := 0
	if len(args) == 3 {
		var err error
		if n, err = strconv.Atoi(args[2]); err != nil || n < 0 {
			return fmt.Errorf("%s is no number of instances", args[2])
		}
	}
	return c.room(args[0], args[1], n, fmt.Sprintf("%s has room for %d %s now, and for as many spot ones", args[0], n, args[1]))
}

func (c console) free(args []string) error {
	if len(args) != 2 {
		return errArgs
	}
	return c.room(args[0], args[1], -1, fmt.Sprintf("%s has room for %s again", args[0], args[1]))
}

func (c console) room(zone, kind string, n int, said string) error {
	region := c.s.RegionOf(zone)
	if region == "" {
		return fmt.Errorf("there is no zone %s; there are %s", zone, strings.Join(c.s.Zones(), " "))
	}
	if !c.s.HasType(kind) {
		return fmt.Errorf("there is no instance type %s", kind)
	}
	c.s.SetCapacity(region, zone, kind, n)
	c.s.SetSpotCapacity(region, zone, kind, n)
	_, err := fmt.Fprintln(c.out, said)
	return err
}
