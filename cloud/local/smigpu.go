//go:build unix

package local

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"time"
)

// What a simulated GPU is.
const (
	gpuName       = "Simulated GPU"
	smiDriver     = "000.00"
	smiMemory     = int64(16) << 30
	smiPowerLimit = 250.0
)

// gpu is one simulated GPU at one moment.
type gpu struct {
	index, count int
	uuid         string
	util         int   // percent
	used         int64 // bytes
	apps         []process
}

// temperature and power follow the utilisation, as they do on a real one.
func (g gpu) temperature() int { return 32 + g.util*2/5 }
func (g gpu) power() float64   { return 25 + 2.1*float64(g.util) }

// gpuField is one field that can be asked of a GPU.
type gpuField struct {
	unit string
	of   func(gpu) string
}

func fixed(text string) func(gpu) string { return func(gpu) string { return text } }

// gpuFields are the fields of --query-gpu that are simulated. A real card that
// lacks a sensor answers [N/A]; so do these where there is nothing to follow.
var gpuFields = map[string]gpuField{
	"index":                   {"", func(g gpu) string { return strconv.Itoa(g.index) }},
	"name":                    {"", fixed(gpuName)},
	"gpu_name":                {"", fixed(gpuName)},
	"count":                   {"", func(g gpu) string { return strconv.Itoa(g.count) }},
	"uuid":                    {"", func(g gpu) string { return g.uuid }},
	"gpu_uuid":                {"", func(g gpu) string { return g.uuid }},
	"driver_version":          {"", fixed(smiDriver)},
	"timestamp":               {"", func(gpu) string { return time.Now().Format("2006/01/02 15:04:05.000") }},
	"pci.bus_id":              {"", func(g gpu) string { return fmt.Sprintf("00000000:%02X:00.0", g.index+1) }},
	"pstate":                  {"", func(g gpu) string { return map[bool]string{true: "P0", false: "P8"}[g.util > 0] }},
	"utilization.gpu":         {"%", func(g gpu) string { return strconv.Itoa(g.util) }},
	"utilization.memory":      {"%", func(g gpu) string { return strconv.Itoa(int(g.used * 100 / smiMemory)) }},
	"memory.total":            {"MiB", func(gpu) string { return strconv.FormatInt(smiMemory>>20, 10) }},
	"memory.used":             {"MiB", func(g gpu) string { return strconv.FormatInt(g.used>>20, 10) }},
	"memory.free":             {"MiB", func(g gpu) string { return strconv.FormatInt((smiMemory-g.used)>>20, 10) }},
	"temperature.gpu":         {"", func(g gpu) string { return strconv.Itoa(g.temperature()) }},
	"temperature.memory":      {"", fixed("[N/A]")},
	"power.draw":              {"W", func(g gpu) string { return fmt.Sprintf("%.2f", g.power()) }},
	"power.limit":             {"W", func(gpu) string { return fmt.Sprintf("%.2f", smiPowerLimit) }},
	"enforced.power.limit":    {"W", func(gpu) string { return fmt.Sprintf("%.2f", smiPowerLimit) }},
	"fan.speed":               {"%", fixed("[N/A]")},
	"clocks.sm":               {"MHz", fixed("[N/A]")},
	"clocks.mem":              {"MHz", fixed("[N/A]")},
	"clocks.current.sm":       {"MHz", fixed("[N/A]")},
	"compute_mode":            {"", fixed("Default")},
	"mig.mode.current":        {"", fixed("[N/A]")},
	"ecc.mode.current":        {"", fixed("[N/A]")},
	"persistence_mode":        {"", fixed("Enabled")},
	"compute_cap":             {"", fixed("[N/A]")},
	"vbios_version":           {"", fixed("[N/A]")},
	"serial":                  {"", fixed("[N/A]")},
	"pcie.link.gen.current":   {"", fixed("[N/A]")},
	"pcie.link.width.current": {"", fixed("[N/A]")},
}

// appField is one field that can be asked of a process on a GPU.
type appField struct {
	unit string
	of   func(gpu, process) string
}

// appFields are the fields of --query-compute-apps.
var appFields = map[string]appField{
	"pid":             {"", func(_ gpu, p process) string { return strconv.Itoa(p.pid) }},
	"process_name":    {"", func(_ gpu, p process) string { return p.name }},
	"name":            {"", func(_ gpu, p process) string { return p.name }},
	"used_memory":     {"MiB", func(_ gpu, p process) string { return strconv.FormatInt(p.rss>>20, 10) }},
	"used_gpu_memory": {"MiB", func(_ gpu, p process) string { return strconv.FormatInt(p.rss>>20, 10) }},
	"gpu_uuid":        {"", func(g gpu, _ process) string { return g.uuid }},
	"gpu_name":        {"", func(gpu, process) string { return gpuName }},
	"gpu_bus_id":      {"", func(g gpu, _ process) string { return gpuFields["pci.bus_id"].of(g) }},
}

// idle are the GPUs of a node with nothing on them.
func idle(n int, cookie string) []gpu {
	gpus := make([]gpu, n)
	for i := range gpus {
		sum := sha256.Sum256([]byte(cookie + strconv.Itoa(i)))
		gpus[i] = gpu{index: i, count: n, uuid: fmt.Sprintf("GPU-%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])}
	}
	return gpus
}

// meter measures what the processes of a node use.
type meter struct {
	node, cookie string
	index        int
	at           time.Time
	before       map[int]process
}

func newMeter(node, cookie string) (*meter, error) {
	index, err := nodeIndex(node)
	if err != nil {
		return nil, err
	}
	m := &meter{node: node, cookie: cookie, index: index}
	_, err = m.look()
	return m, err
}

// look finds what runs on the node, except this process and those that it runs
// for: a monitor is no load.
func (m *meter) look() (map[int]process, error) {
	s, err := readServing(m.node)
	if err != nil {
		return nil, err
	}
	all, err := runningOn(s.PID, m.cookie, m.index)()
	if err != nil {
		return nil, err
	}
	now := map[int]process{}
	for _, p := range all {
		now[p.pid] = p
	}
	for pid := os.Getppid(); pid != s.PID; {
		above, ok := now[pid]
		if !ok {
			break
		}
		delete(now, pid)
		pid = above.ppid
	}
	m.at, m.before = time.Now(), now
	return now, nil
}

// read measures from the last look until now.
func (m *meter) read(n int) ([]gpu, error) {
	before, since := m.before, m.at
	now, err := m.look()
	if err != nil {
		return nil, err
	}
	return share(idle(n, m.cookie), before, now, m.at.Sub(since), gpuOf), nil
}

// share gives each process to its GPU. One busy core is a busy GPU; time that a
// process used before it was first seen counts as well.
func share(gpus []gpu, before, now map[int]process, wall time.Duration, gpuOf func(int) int) []gpu {
	busy := make([]time.Duration, len(gpus))
	for pid, p := range now {
		if len(gpus) == 0 {
			break
		}
		i := gpuOf(pid) % len(gpus)
		spent := p.cpu
		if old, ok := before[pid]; ok && old.start == p.start {
			spent -= old.cpu
		}
		busy[i] += spent
		gpus[i].used = min(gpus[i].used+p.rss, smiMemory)
		if p.rss >= appMemory {
			gpus[i].apps = append(gpus[i].apps, p)
		}
	}
	for i := range gpus {
		if wall > 0 {
			gpus[i].util = min(100, int(100*busy[i]/wall))
		}
	}
	return gpus
}

// appMemory is what a process must use to be listed: shells and watchers use
// less, nothing that trains does.
const appMemory = 8 << 20

// gpuOf is the GPU that a process of a distributed run would take: its local
// rank. All others take the first.
func gpuOf(pid int) int {
	rank, err := strconv.Atoi(variable(pid, "LOCAL_RANK"))
	if err != nil || rank < 0 {
		return 0
	}
	return rank
}
