// Command nodesbench measures what dlwb does with nodes beside the programs that
// people use for the same: OpenSSH, pdsh, fabric, Ansible, rsync and scp, each
// at its best. It runs on internal/testbed, so it needs Linux and root, and
// prints one line a figure:
//
//	BENCH <name> <value> <unit> target <target> <ok|short>
//
// What can't be measured here is a line too, with the reason. `make bench-nodes`
// runs it; docs/bench.md holds the last table.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// The hosts of a bench, as the targets count them.
var usualCounts = []int{2, 8, 32, 64}

// group is what one part of the bench measures.
type group struct {
	name, about string
	run         func(b *bench) error
}

var groups = []group{
	{"exec", "one command on N nodes, cold and on open connections", measureExec},
	{"environment", "the environment play on 8 nodes", measureEnvironment},
	{"sync", "5,000 files, 50 MB to 8 nodes over the WAN", measureSync},
	{"program", "dlwb as a person runs it: again, a run, a million lines, sync on the LAN and the WAN, 500 MB", measureProgram},
	{"file", "one large file to one node and to 8", measureFile},
	{"log", "a million lines of log, and the delay of one", measureLog},
	{"telemetry", "64 nodes with 8 GPUs at 1 Hz", measureTelemetry},
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == telemetryChild {
		exitOn(watchTelemetry(os.Args[2], os.Args[3]))
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parse(os.Args[1:])
	if err == nil {
		err = run(ctx, o)
	}
	stop()
	exitOn(err)
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "nodesbench:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	counts      []int
	rounds      int
	only        [2]*regexp.Regexp // of groups, and of figures
	quick, json bool
	write       string
	profile     string
}

func parse(args []string) (options, error) {
	f := flag.NewFlagSet("nodesbench", flag.ContinueOnError)
	f.Usage = func() {
		_, _ = fmt.Fprintln(f.Output(), "nodesbench [flags] measures, of these groups:")
		for _, g := range groups {
			_, _ = fmt.Fprintf(f.Output(), "  %-12s %s\n", g.name, g.about)
		}
		f.PrintDefaults()
	}
	o := options{}
	counts := f.String("n", "", "numbers of nodes, such as 2,8 (default 2,8,32,64)")
	only := f.String("only", "", "measure only what matches, as GROUP or GROUP/NAME: two regular expressions")
	f.IntVar(&o.rounds, "rounds", 5, "rounds, of which the median counts")
	f.BoolVar(&o.quick, "quick", false, "few nodes, small files, two rounds: whether the bench works, not what is true")
	f.BoolVar(&o.json, "json", false, "print one JSON object a figure instead")
	f.StringVar(&o.write, "write", "", "write the table to this file, between its marks")
	f.StringVar(&o.profile, "cpuprofile", "", "write what dlwb's side used of the processor to this file, for go tool pprof")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	o.counts = usualCounts
	if o.quick {
		o.counts, o.rounds = []int{2, 4}, 2
	}
	if *counts != "" {
		o.counts = nil
		for _, text := range strings.Split(*counts, ",") {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 || n > 200 {
				return o, fmt.Errorf("-n %s: %q is no number of nodes between 1 and 200", *counts, text)
			}
			o.counts = append(o.counts, n)
		}
	}
	var errs [2]error
	groups, names, _ := strings.Cut(*only, "/")
	if o.write != "" && (*only != "" || o.quick) {
		return o, errors.New("-write takes a whole table: leave -only and -quick out")
	}
	o.only[0], errs[0] = regexp.Compile(groups)
	o.only[1], errs[1] = regexp.Compile(names)
	return o, errors.Join(errs[:]...)
}

func run(ctx context.Context, o options) error {
	began := time.Now()
	b, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer b.close()
	if o.profile != "" {
		f, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	for _, g := range groups {
		if ctx.Err() != nil || !b.wantsGroup(g.name) {
			continue
		}
		b.group = g.name
		if err := g.run(b); err != nil {
			b.missed(g.name, err.Error())
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if o.write != "" {
		return b.document(o.write, time.Since(began))
	}
	return nil
}
