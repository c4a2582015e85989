package smi

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"strings"
)

// readTable reads what nvidia-smi prints without arguments. Each GPU has two
// rows, and a third with MIG: index and name, then temperature, power, memory
// and utilization. Below them are the processes.
func readTable(text string) Answer {
	var a Answer
	var g *GPU
	parts, processes := false, false // what is below is of devices of MIG, which are parts of the GPUs above, or of processes
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.Contains(line, "| NVIDIA-SMI "): // the next of several
			g, parts, processes = nil, false, false
		case strings.Contains(line, "MIG devices:"):
			g, parts = nil, true
		case strings.HasPrefix(line, "| Processes:"), strings.HasPrefix(line, "| Compute processes:"):
			g, processes = nil, true
		}
		if processes {
			if app, ok := tableApp(line); ok {
				a.Apps = append(a.Apps, app)
			}
			continue
		}
		if parts {
			continue
		}
		if class := Classify(line); class != NoError {
			a.Error = worse(a.Error, class)
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 3 || !strings.HasPrefix(line, "|") {
			continue
		}
		if next, ok := tableGPU(cells[0]); ok {
			a.GPUs = append(a.GPUs, next)
			g = &a.GPUs[len(a.GPUs)-1]
		} else if g != nil && (strings.Contains(cells[0], " / ") || strings.Contains(cells[1], "/")) {
			tableReadings(g, cells)
			g = nil
		}
	}
	return a
}

// tableGPU reads "   0  NVIDIA A100-SXM4-40GB          Off ".
func tableGPU(cell string) (GPU, bool) {
	words := strings.Fields(cell)
	if len(words) < 3 {
		return GPU{}, false
	}
	index, err := strconv.ParseUint(words[0], 10, 16)
	if err != nil {
		return GPU{}, false
	}
	return GPU{Index: int(index), Name: strings.Join(words[1:len(words)-1], " ")}, true
}

// tableReadings reads " N/A   33C    P0   46W / 400W |  2MiB / 40960MiB |  0%  Default ".
func tableReadings(g *GPU, parts []string) {
	draw, limit, _ := strings.Cut(parts[0], "/ ")
	if before, after, ok := strings.Cut(parts[0], " / "); ok {
		draw, limit = before, after
	}
	words := strings.Fields(draw)
	for i, w := range words {
		if strings.HasSuffix(w, "C") && i < 3 {
			g.Temp = reading(w)
		}
	}
	if len(words) > 0 {
		g.Power = reading(words[len(words)-1])
		if !strings.HasSuffix(words[len(words)-1], "W") {
			g.Power = nil
		}
	}
	g.PowerLimit = reading(limit)
	used, total, _ := strings.Cut(parts[1], "/")
	g.MemUsed, g.MemTotal = reading(used), reading(total)
	if words := strings.Fields(parts[2]); len(words) > 0 && strings.HasSuffix(words[0], "%") {
		g.Util = reading(words[0])
	}
}

// document is the part of "nvidia-smi -q -x" that is read. Driver 530 renamed
// power_readings.
type document struct {
	GPUs []struct {
		Name   string        `xml:"product_name"`
		Util   string        `xml:"utilization>gpu_util"`
		Used   string        `xml:"fb_memory_usage>used"`
		Total  string        `xml:"fb_memory_usage>total"`
		Temp   string        `xml:"temperature>gpu_temp"`
		Power  powerReadings `xml:"power_readings"`
		Power2 powerReadings `xml:"gpu_power_readings"`
		Apps   []struct {
			PID  int    `xml:"pid"`
			Name string `xml:"process_name"`
			Used string `xml:"used_memory"`
		} `xml:"processes>process_info"`
	} `xml:"gpu"`
}

type powerReadings struct {
	Draw    string `xml:"power_draw"`
	Instant string `xml:"instant_power_draw"`
	Average string `xml:"average_power_draw"`
	Limit   string `xml:"power_limit"`
	Current string `xml:"current_power_limit"`
}

func readXML(text []byte) Answer {
	var a Answer
	var doc document
	d := xml.NewDecoder(bytes.NewReader(text))
	d.Strict = false
	if err := d.Decode(&doc); err != nil {
		a.Error = OtherError
	}
	for i, x := range doc.GPUs {
		g := GPU{Index: i, Name: x.Name, Util: reading(x.Util), MemUsed: reading(x.Used), MemTotal: reading(x.Total), Temp: reading(x.Temp)}
		g.Power = first(x.Power.Draw, x.Power2.Draw, x.Power2.Instant, x.Power2.Average)
		g.PowerLimit = first(x.Power.Limit, x.Power2.Current)
		a.GPUs = append(a.GPUs, g)
		for _, p := range x.Apps {
			a.Apps = append(a.Apps, App{PID: p.PID, Name: p.Name, Memory: reading(p.Used)})
		}
	}
	return a
}

// first is the first of several readings that is available.
func first(cells ...string) *float64 {
	for _, c := range cells {
		if v := reading(c); v != nil {
			return v
		}
	}
	return nil
}
