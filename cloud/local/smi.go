//go:build unix

package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/waits"
)

// smiWindow is how long a single answer looks at the CPU use before it answers.
// The process table counts in hundredths of a second.
const smiWindow = 200 * time.Millisecond

// smiCall is a parsed command line of the simulated nvidia-smi.
type smiCall struct {
	list                 bool
	gpuFields, appFields []string
	noHeader, noUnits    bool
	only                 string
	every                time.Duration
	node                 string
	gpus                 int
	out                  *bufio.Writer
	cookie               string
}

// SimulatedSMIMain plays nvidia-smi on a node with simulated GPUs. args are the
// node's directory and what nvidia-smi was called with. The GPUs have the
// utilisation and the memory that the processes on the node really use of the
// CPU and of the machine's memory.
func SimulatedSMIMain(args []string) int {
	c, err := parseSMI(args)
	if err == nil {
		err = c.open()
	}
	if err == nil {
		err = c.run(context.Background())
	}
	var usage usageError
	switch {
	case errors.As(err, &usage):
		fmt.Println(err) // nvidia-smi, too, complains on stdout
		return 2
	case err != nil:
		fmt.Fprintln(os.Stderr, "simulated nvidia-smi:", err)
		return 1
	}
	return 0
}

// usageError is a command line that nvidia-smi would refuse.
type usageError string

func (e usageError) Error() string { return string(e) }

// parseSMI reads the command line.
func parseSMI(args []string) (*smiCall, error) {
	if len(args) == 0 {
		return nil, usageError("simulated nvidia-smi: it is called by dlwb itself, with the directory of a node")
	}
	c := &smiCall{node: args[0]}
	args = args[1:]
	for len(args) > 0 {
		name, value, joined := strings.Cut(args[0], "=")
		args = args[1:]
		if !joined && len(args) > 0 && (name == "-l" || name == "--loop" || name == "-lms" || name == "--loop-ms" || name == "-i" || name == "--id" || name == "-f") {
			value, args = args[0], args[1:]
		}
		if err := c.set(name, value); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *smiCall) set(name, value string) error {
	switch name {
	case "-L", "--list-gpus":
		c.list = true
	case "-i", "--id":
		c.only = value
	case "--query-gpu":
		c.gpuFields = strings.Split(value, ",")
		return checkFields(c.gpuFields, gpuFields)
	case "--query-compute-apps":
		c.appFields = strings.Split(value, ",")
		return checkFields(c.appFields, appFields)
	case "--format":
		for part := range strings.SplitSeq(value, ",") {
			switch strings.TrimSpace(part) {
			case "csv":
			case "noheader":
				c.noHeader = true
			case "nounits":
				c.noUnits = true
			default:
				return usageError(fmt.Sprintf("Format \"%s\" is not supported.", part))
			}
		}
	case "-l", "--loop":
		return c.loop(value, time.Second)
	case "-lms", "--loop-ms":
		return c.loop(value, time.Millisecond)
	default:
		return usageError("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n(" + name + " is not simulated)")
	}
	return nil
}

func (c *smiCall) loop(value string, unit time.Duration) error {
	n, err := strconv.Atoi(value)
	if value == "" {
		n, err = 5, nil
	}
	if err != nil || n < 1 {
		return usageError("Invalid loop interval: " + value)
	}
	c.every = time.Duration(n) * unit
	return nil
}

// checkFields refuses the first field that is not known, in nvidia-smi's words.
func checkFields[V any](asked []string, known map[string]V) error {
	for i, f := range asked {
		asked[i] = strings.TrimSpace(f)
		if _, ok := known[asked[i]]; !ok {
			return usageError(fmt.Sprintf("Field \"%s\" is not a valid field to query.\n", asked[i]))
		}
	}
	return nil
}

// open reads what the node is.
func (c *smiCall) open() error {
	in, err := readIntent(filepath.Dir(c.node))
	if err != nil {
		return err
	}
	c.gpus, c.cookie = in.SimulateGPUs, in.ID
	c.out = bufio.NewWriter(os.Stdout)
	return nil
}

// run answers once, or again and again until nobody reads any more.
func (c *smiCall) run(ctx context.Context) error {
	if c.list {
		for _, g := range idle(c.gpus, c.cookie) {
			fmt.Fprintf(c.out, "GPU %d: %s (UUID: %s)\n", g.index, gpuName, g.uuid)
		}
		return c.out.Flush()
	}
	meter, err := newMeter(c.node, c.cookie)
	if err != nil {
		return err
	}
	wait := smiWindow
	for first := true; ; first = false {
		if err := waits.Pause(ctx, wait); err != nil {
			return err
		}
		gpus, err := meter.read(c.gpus)
		if err != nil {
			return err
		}
		c.print(c.chosen(gpus), first)
		if err := c.out.Flush(); err != nil || c.every == 0 {
			return err
		}
		wait = c.every
	}
}

// chosen picks the GPU of -i.
func (c *smiCall) chosen(gpus []gpu) []gpu {
	if c.only == "" {
		return gpus
	}
	var picked []gpu
	for _, g := range gpus {
		if c.only == strconv.Itoa(g.index) || c.only == g.uuid {
			picked = append(picked, g)
		}
	}
	return picked
}

// print writes one answer.
func (c *smiCall) print(gpus []gpu, first bool) {
	switch {
	case c.gpuFields != nil:
		c.header(first, c.gpuFields, func(f string) string { return gpuFields[f].unit })
		for _, g := range gpus {
			c.row(c.gpuFields, func(f string) (string, string) { return gpuFields[f].of(g), gpuFields[f].unit })
		}
	case c.appFields != nil:
		c.header(first, c.appFields, func(f string) string { return appFields[f].unit })
		for _, g := range gpus {
			for _, a := range g.apps {
				c.row(c.appFields, func(f string) (string, string) { return appFields[f].of(g, a), appFields[f].unit })
			}
		}
	default:
		table(c.out, gpus)
	}
}

func (c *smiCall) header(first bool, fields []string, unit func(string) string) {
	if !first || c.noHeader {
		return
	}
	var names []string
	for _, f := range fields {
		if u := unit(f); u != "" {
			f += " [" + u + "]"
		}
		names = append(names, f)
	}
	fmt.Fprintln(c.out, strings.Join(names, ", "))
}

func (c *smiCall) row(fields []string, value func(string) (text, unit string)) {
	var cells []string
	for _, f := range fields {
		text, unit := value(f)
		if unit != "" && !c.noUnits && !strings.HasPrefix(text, "[") {
			text += " " + unit
		}
		cells = append(cells, text)
	}
	fmt.Fprintln(c.out, strings.Join(cells, ", "))
}

// table is the picture that nvidia-smi draws when it is asked for nothing.
func table(w io.Writer, gpus []gpu) {
	line := "+" + strings.Repeat("-", 77) + "+\n"
	put := func(format string, a ...any) { fmt.Fprintf(w, "| %-75s |\n", fmt.Sprintf(format, a...)) }
	fmt.Fprint(w, line)
	put("NVIDIA-SMI %s (SIMULATED by dlwb: follows the CPU use of this node)", smiDriver)
	fmt.Fprint(w, line)
	put("%3s  %-17s  %4s  %-13s  %-21s  %7s", "GPU", "Name", "Temp", "Pwr:Usage/Cap", "Memory-Usage", "Util")
	fmt.Fprint(w, line)
	for _, g := range gpus {
		put("%3d  %-17s  %3dC  %4.0fW / %4.0fW  %6dMiB / %6dMiB  %6d%%",
			g.index, gpuName, g.temperature(), g.power(), smiPowerLimit, g.used>>20, smiMemory>>20, g.util)
	}
	fmt.Fprint(w, line)
	for _, g := range gpus {
		for _, a := range g.apps {
			put("GPU %d  PID %-8d  %-30.30s  %8dMiB", g.index, a.pid, a.name, a.rss>>20)
		}
	}
	fmt.Fprint(w, line)
}
