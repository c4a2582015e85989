package smi

import (
	"strconv"
	"strings"
)

// isSections reports whether a text is what "nvidia-smi -q" prints, whole or of some of
// its sections (-d), or what grep has left of its head.
func isSections(text string) bool {
	return strings.Contains(text, "=NVSMI LOG=") || strings.Contains(text, "Attached GPUs") && strings.Contains(text, "\nGPU 0")
}

// Indents of "nvidia-smi -q": what is deeper is of a part of the GPU, as a device of
// MIG is.
const (
	ofGPU     = 4
	ofSection = 8
)

// sectionFields are the lines of sections that are read, in lower case: newer drivers
// write "GPU" where older ones wrote "Gpu".
var sectionFields = map[string]func(*GPU) **float64{
	"utilization/gpu":                             func(g *GPU) **float64 { return &g.Util },
	"fb memory usage/used":                        func(g *GPU) **float64 { return &g.MemUsed },
	"fb memory usage/total":                       func(g *GPU) **float64 { return &g.MemTotal },
	"temperature/gpu current temp":                func(g *GPU) **float64 { return &g.Temp },
	"temperature/gpu":                             func(g *GPU) **float64 { return &g.Temp },
	"power readings/power draw":                   func(g *GPU) **float64 { return &g.Power },
	"power readings/power limit":                  func(g *GPU) **float64 { return &g.PowerLimit },
	"gpu power readings/power draw":               func(g *GPU) **float64 { return &g.Power },
	"gpu power readings/instantaneous power draw": func(g *GPU) **float64 { return &g.Power },
	"gpu power readings/current power limit":      func(g *GPU) **float64 { return &g.PowerLimit },
}

// otherSectionPower is the power drawn where no other line has it.
const otherSectionPower = "gpu power readings/average power draw"

// readSections reads "nvidia-smi -q", also repeated (-l): each reading is a row.
func readSections(text string) Answer {
	var a Answer
	var g *GPU
	section, index, app := "", 0, -1
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		indent := len(line) - len(strings.TrimLeft(line, " "))
		name, value, pair := strings.Cut(line[indent:], ":")
		name, value = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(value)
		switch {
		case name == "":
		case strings.Contains(line, "=NVSMI LOG="):
			g, index = nil, 0
		case indent == 0 && strings.HasPrefix(line, "GPU "):
			a.GPUs = append(a.GPUs, GPU{Index: index})
			g = &a.GPUs[len(a.GPUs)-1]
			section, app = "", -1
			index++
			if class := Classify(line); class != NoError {
				a.Error = worse(a.Error, class)
			}
		case indent == 0 && !pair:
			if class := Classify(line); class != NoError {
				a.Error = worse(a.Error, class)
			}
		case g == nil:
		case indent == ofGPU:
			if section, app = name, -1; name == "product name" {
				g.Name = value
			}
		case section == "processes":
			app = a.ofProcess(app, name, value)
		case indent == ofSection && pair:
			if field := sectionFields[section+"/"+name]; field != nil {
				if v := reading(value); v != nil {
					*field(g) = v
				}
			} else if section+"/"+name == otherSectionPower && g.Power == nil {
				g.Power = reading(value)
			}
		}
	}
	return a
}

// ofProcess takes a line of the processes of a GPU. app is which of the processes the
// lines before were of, -1 of none.
func (a *Answer) ofProcess(app int, name, value string) int {
	switch name {
	case "process id":
		pid, err := strconv.Atoi(value)
		if err != nil {
			return -1
		}
		a.Apps = append(a.Apps, App{PID: pid})
		return len(a.Apps) - 1
	case "name":
		if app >= 0 {
			a.Apps[app].Name = value
		}
	case "used gpu memory":
		if app >= 0 {
			a.Apps[app].Memory = reading(value)
		}
	}
	return app
}

// processTypes are what the table of processes calls them: of graphics, of computing.
var processTypes = map[string]bool{"C": true, "G": true, "C+G": true, "M": true, "M+C": true}

// tableApp reads "|    0   N/A  N/A      1234      C   python3     1234MiB |", and what
// older drivers print without the instances of MIG.
func tableApp(line string) (App, bool) {
	words := strings.Fields(strings.Trim(line, "|"))
	if len(words) < 4 {
		return App{}, false
	}
	if _, err := strconv.ParseUint(words[0], 10, 16); err != nil {
		return App{}, false
	}
	for i := 2; i < min(len(words)-1, 6); i++ {
		pid, err := strconv.Atoi(words[i-1])
		if !processTypes[words[i]] || err != nil {
			continue
		}
		app, name := App{PID: pid}, words[i+1:]
		if last := name[len(name)-1]; strings.HasSuffix(last, "MiB") || last == "N/A" {
			app.Memory, name = reading(last), name[:len(name)-1]
		}
		app.Name = strings.Join(name, " ")
		return app, true
	}
	return App{}, false
}
