// Package smi reads what nvidia-smi answers, in whichever form it was asked.
package smi

import (
	"bytes"
	"strconv"
	"strings"
	"unicode"
)

// Fields are what nvidia-smi is asked for, with
// --format=csv,noheader,nounits; answers are read by position.
const Fields = "index,name,utilization.gpu,memory.used,memory.total,temperature.gpu,power.draw,power.limit"

// largestReading is more than any cell of a GPU can hold.
const largestReading = 1e9

// ErrorClass says what kind of thing nvidia-smi said instead of an answer.
type ErrorClass string

// The classes. Others than these are never made.
const (
	NoError         ErrorClass = ""
	NoDevices       ErrorClass = "no_devices"              // the driver runs, and sees no GPU
	DriverNotLoaded ErrorClass = "driver_not_loaded"       // the kernel module is missing or does not answer
	DriverMismatch  ErrorClass = "driver_library_mismatch" // updated, and not restarted since
	NotInstalled    ErrorClass = "not_installed"           // there is no nvidia-smi
	GPULost         ErrorClass = "gpu_lost"                // a GPU fell off the bus
	NoPermission    ErrorClass = "no_permission"
	BadField        ErrorClass = "bad_field"     // the driver is too old to know what was asked for
	NotSupported    ErrorClass = "not_supported" // dmon and pmon of a GPU that is not counted so
	NotYet          ErrorClass = "not_yet"       // AMD's and AWS Neuron's tools answered, which are not read yet
	OtherError      ErrorClass = "other"
)

// otherMakers are what the tools of other makers' devices print (rocm-smi,
// amd-smi, neuron-ls, neuron-top, neuron-monitor) or are missed by. This is the
// one place that answers for them.
var otherMakers = []string{"rocm system management interface", "rocm-smi", "amd-smi", "amdsmi", "amd instinct", "neuron-ls", "neuron-top", "neuron_runtime_data", "| neuron |", "neuron_hw_counters"}

// errorTexts are what each class is told by. The first that matches counts.
var errorTexts = []struct {
	class ErrorClass
	text  string
}{
	{DriverMismatch, "version mismatch"},
	{GPULost, "unable to determine the device handle"}, {GPULost, "gpu is lost"}, {GPULost, "fallen off the bus"}, {GPULost, "gpu requires reset"},
	{NoDevices, "no devices were found"}, {NoDevices, "no devices found"}, {NoDevices, "no gpus found"},
	{NotInstalled, "command not found"}, {NotInstalled, "nvidia-smi: not found"}, {NotInstalled, "is not recognized as"}, {NotInstalled, "executable file not found"},
	{NotInstalled, "no such file or directory"}, {NotInstalled, "nvml shared library not found"}, {NotInstalled, "couldn't find libnvidia-ml"},
	{NoPermission, "insufficient permissions"}, {NoPermission, "permission denied"}, {NoPermission, "gpu access blocked by the operating system"},
	{BadField, "is not a valid field to query"}, {BadField, "invalid combination of input arguments"}, {BadField, "is not recognized. please run"},
	{NotSupported, "not supported on the device"},
	{DriverNotLoaded, "nvidia-smi has failed because it couldn't communicate"}, {DriverNotLoaded, "driver not loaded"}, {DriverNotLoaded, "driver is not loaded"},
	{OtherError, "failed to initialize nvml"}, {OtherError, "failed to properly shut down nvml"}, {OtherError, "unknown error"}, {OtherError, "nvidia-smi has failed"},
}

// aboutGPUs are the words by which an error text is known to be about GPUs, and
// not about the training of whose output it is.
var aboutGPUs = []string{"nvidia", "nvml", "gpu", "no devices", "field to query", "driver", "not supported on the device", "combination of input arguments"}

// isErrorText reports whether a text is nothing but an error of nvidia-smi or
// of a tool like it.
func isErrorText(text string) bool {
	class := Classify(text)
	if class == NoError || class == NotYet {
		return class == NotYet
	}
	lower := strings.ToLower(text)
	for _, word := range aboutGPUs {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

// Classify tells what kind of error a text is; NoError when it is none that
// is known.
func Classify(text string) ErrorClass {
	lower := strings.ToLower(text)
	for _, maker := range otherMakers {
		if strings.Contains(lower, maker) {
			return NotYet
		}
	}
	for _, e := range errorTexts {
		if strings.Contains(lower, e.text) {
			return e.class
		}
	}
	return NoError
}

// worse is the one of two errors that says more.
func worse(a, b ErrorClass) ErrorClass {
	for _, e := range errorTexts {
		if e.class == a || e.class == b {
			return e.class
		}
	}
	return a + b // one is none
}

// Answer is what nvidia-smi answered, in whichever form it was asked.
type Answer struct {
	GPUs []GPU
	Apps []App
	// Error is what it said instead, or among its answers.
	Error ErrorClass
}

// GPU is one GPU at one moment. A nil field was not available: nvidia-smi
// answered N/A, [Not Supported], an error, or was too old to know the field.
type GPU struct {
	Index      int      `json:"index"`
	Name       string   `json:"name"`
	Util       *float64 `json:"util"`          // percent
	MemUsed    *float64 `json:"mem_used_mib"`  // MiB
	MemTotal   *float64 `json:"mem_total_mib"` // MiB
	Temp       *float64 `json:"temp_c"`        // °C
	Power      *float64 `json:"power_w"`       // W
	PowerLimit *float64 `json:"power_limit_w"` // W
}

// App is one process on a GPU.
type App struct {
	PID    int      `json:"pid"`
	Name   string   `json:"name"`
	Memory *float64 `json:"mem_mib"` // MiB
}

// Is reports whether a text is an answer of nvidia-smi and not one inside a
// log. all is true when nothing follows it.
func Is(text []byte, all bool) bool {
	head := text[:min(len(text), 600)]
	first, _, _ := bytes.Cut(text, []byte{'\n'})
	line := strings.TrimSpace(string(first))
	switch {
	case bytes.Contains(head, []byte("nvidia_smi_log")):
		return true
	case bytes.Contains(head, []byte("| NVIDIA-SMI ")), isSections(string(head)):
		return true
	case strings.HasPrefix(line, "#") && isMonitor(monitored(line)):
		return true
	case bytes.Contains(head, []byte("ROCm System Management Interface")), bytes.Contains(head, []byte("| AMD-SMI ")), bytes.Contains(head, []byte("\"neuron_runtime_data\"")):
		return true
	case all && len(text) < 2048 && isErrorText(string(text)) && bytes.Count(text, []byte{'\n'}) <= 5:
		return true
	}
	if _, ok := listed(line); ok {
		return true
	}
	if h := header(line); h != nil {
		return true
	}
	g, ok := Parse(line)
	return ok && strings.Count(line, ",") >= 5 && len(g.Name) > 3 && g.Index >= -1 && unicode.IsLetter(rune(g.Name[0])) && (g.MemTotal != nil || g.Util != nil || g.Temp != nil)
}

// isMonitor reports whether the columns are those of dmon or pmon.
func isMonitor(columns []string) bool {
	return has(columns, "gpu") && (has(columns, "sm") || has(columns, "pwr") || has(columns, "pid") || has(columns, "fb"))
}

// Read reads an answer of nvidia-smi: the CSV of --query-gpu with or without
// header and units, also repeated, that of --query-compute-apps, the table, the
// XML of -q -x, the sections of -q, dmon, pmon, and error texts. It reports false for any other text.
func Read(text []byte) (Answer, bool) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var a Answer
	switch {
	case bytes.Contains(text, []byte("<nvidia_smi_log>")):
		a = readXML(text)
	case bytes.Contains(text, []byte("NVIDIA-SMI")) && bytes.Contains(text, []byte("+--")):
		a = readTable(string(text))
	case isSections(string(text[:min(len(text), 600)])):
		a = readSections(string(text))
	default:
		a = readLines(string(text))
	}
	if len(a.GPUs) == 0 && a.Error == NoError {
		a.Error = Classify(string(text[:min(len(text), 4096)]))
	}
	return a, len(a.GPUs) > 0 || len(a.Apps) > 0 || a.Error != NoError
}

// readLines reads the forms that have one thing in each line.
func readLines(text string) Answer {
	var a Answer
	var columns []string
	apps := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if fields := header(line); fields != nil {
			columns, apps = fields, has(fields, "pid")
			continue
		}
		if strings.HasPrefix(line, "#") {
			if columns == nil || has(monitored(line), "gpu") {
				columns = monitored(line)
			}
			continue
		}
		if g, ok := listed(line); ok {
			a.GPUs = append(a.GPUs, g)
			continue
		}
		if class := Classify(line); class != NoError && strings.Count(line, ",") < 3 {
			a.Error = worse(a.Error, class)
			continue
		}
		a.line(line, columns, apps)
	}
	return a
}

// monitored are the columns that a header of dmon or pmon names, also with
// dates before them (-o DT) or as CSV (--format csv).
func monitored(line string) []string {
	return strings.FieldsFunc(strings.ToLower(line[1:]), func(r rune) bool { return r == ' ' || r == ',' })
}

// listed reads a line of "nvidia-smi -L": "GPU 0: NVIDIA A10G (UUID: GPU-…)".
func listed(line string) (GPU, bool) {
	rest, ok := strings.CutPrefix(line, "GPU ")
	number, rest, ok2 := strings.Cut(rest, ": ")
	name, _, ok3 := strings.Cut(rest, " (UUID: ")
	index, err := strconv.ParseUint(number, 10, 16)
	return GPU{Index: int(index), Name: name}, ok && ok2 && ok3 && err == nil
}

// line reads a row, whose columns are nil when there was no header.
func (a *Answer) line(line string, columns []string, apps bool) {
	if columns == nil {
		if g, ok := Parse(line); ok {
			a.GPUs = append(a.GPUs, g)
		}
		return
	}
	cells := strings.Split(line, ",")
	if !strings.Contains(line, ",") {
		cells = strings.Fields(line)
	}
	if len(cells) < 2 || len(cells) < len(columns)-1 {
		return
	}
	row := map[string]string{}
	for i, c := range columns {
		if i < len(cells) {
			row[c] = strings.TrimSpace(cells[i])
		}
	}
	switch {
	case apps:
		a.app(row)
	case row["pid"] != "": // pmon
		a.app(map[string]string{"pid": row["pid"], "process_name": row["command"], "used_gpu_memory": row["fb"]})
	case row["gpu"] != "" && !isIndex(row["gpu"]): // the units of dmon, from whom the mark before them was taken
	default:
		a.gpu(row)
	}
}

func isIndex(cell string) bool {
	_, err := strconv.ParseUint(cell, 10, 16)
	return err == nil
}

func (a *Answer) app(row map[string]string) {
	pid, err := strconv.Atoi(row["pid"])
	if err != nil {
		return
	}
	name := row["process_name"]
	if name == "" {
		name = row["name"]
	}
	used := row["used_gpu_memory"]
	if used == "" { // what the driver also calls it
		used = row["used_memory"]
	}
	a.Apps = append(a.Apps, App{PID: pid, Name: name, Memory: reading(used)})
}

// names are the fields, as queries and dmon call them.
var names = map[string]func(*GPU) **float64{
	"utilization.gpu": func(g *GPU) **float64 { return &g.Util }, "sm": func(g *GPU) **float64 { return &g.Util },
	"memory.used": func(g *GPU) **float64 { return &g.MemUsed }, "fb": func(g *GPU) **float64 { return &g.MemUsed },
	"memory.total":    func(g *GPU) **float64 { return &g.MemTotal },
	"temperature.gpu": func(g *GPU) **float64 { return &g.Temp }, "gtemp": func(g *GPU) **float64 { return &g.Temp }, "temp": func(g *GPU) **float64 { return &g.Temp },
	"power.draw": func(g *GPU) **float64 { return &g.Power }, "pwr": func(g *GPU) **float64 { return &g.Power },
	"power.limit": func(g *GPU) **float64 { return &g.PowerLimit },
}

// otherPower are newer names of the power drawn, which count when the plain
// one is not available.
var otherPower = []string{"power.draw.instant", "power.draw.average"}

func (a *Answer) gpu(row map[string]string) {
	g := GPU{Index: len(a.GPUs), Name: row["name"]}
	for _, key := range []string{"index", "gpu"} {
		if n, err := strconv.ParseUint(row[key], 10, 16); err == nil {
			g.Index = int(n)
		}
	}
	for name, field := range names {
		if v := reading(row[name]); v != nil {
			*field(&g) = v
		}
	}
	for _, name := range otherPower {
		if g.Power == nil {
			g.Power = reading(row[name])
		}
	}
	if strings.Contains(strings.ToLower(row["name"]), "gpu is lost") {
		a.Error = GPULost
	}
	a.GPUs = append(a.GPUs, g)
}

// header reads the header of a CSV answer: the names of its fields without
// their units. nil when the line is none.
func header(line string) []string {
	cells := strings.Split(line, ",")
	if len(cells) < 2 {
		return nil
	}
	known := 0
	for i, c := range cells {
		name, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(c, "#")), " [")
		cells[i] = name
		if names[name] != nil || name == "index" || name == "name" || name == "uuid" || name == "gpu_uuid" || name == "pid" || name == "process_name" || name == "used_gpu_memory" || name == "gpu_name" || name == "timestamp" {
			known++
		}
	}
	if known < 2 {
		return nil
	}
	return cells
}

func has(words []string, w string) bool {
	for _, x := range words {
		if x == w {
			return true
		}
	}
	return false
}

// Parse reads one line of nvidia-smi's answer to a query of Fields. It
// reports false for a line that is no answer, such as an error text. A cell
// that is not available ("N/A", "[Not Supported]", "[Unknown Error]", "ERR!")
// is nil and never drops the row; where it is the index, that is -1.
func Parse(line string) (GPU, bool) {
	cells := strings.Split(line, ",")
	if len(cells) < 3 {
		return GPU{}, false
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	index, err := strconv.ParseUint(cells[0], 10, 16)
	g := GPU{Index: int(index), Name: cells[1]}
	if err != nil {
		if !absent(cells[0]) {
			return GPU{}, false
		}
		g.Index = -1
	}
	for i, field := range []**float64{&g.Util, &g.MemUsed, &g.MemTotal, &g.Temp, &g.Power, &g.PowerLimit} {
		if i+2 < len(cells) {
			*field = reading(cells[i+2])
		}
	}
	return g, true
}

// absent reports whether a cell says that its value is not available.
func absent(cell string) bool {
	return cell == "N/A" || cell == "ERR!" || strings.HasPrefix(cell, "[") && strings.HasSuffix(cell, "]")
}

// reading is the value of one cell; nil when it is not a number. A unit that
// was asked for or that an old nvidia-smi leaves in ("97 %", "350.00 W",
// "69MiB", "32C") is dropped.
func reading(cell string) *float64 {
	cell, _, _ = strings.Cut(strings.TrimSpace(cell), " ")
	v, err := strconv.ParseFloat(strings.TrimRight(cell, "%WCMiB"), 64)
	if err != nil || !(v >= 0 && v <= largestReading) {
		return nil
	}
	return &v
}
