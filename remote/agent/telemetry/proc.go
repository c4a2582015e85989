//go:build linux

package telemetry

import (
	"os"
	"strconv"
	"strings"
)

// table calls f with the words of each line of a file of the kernel's; a colon
// ends a word, too.
func table(file string, f func(words []string)) {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(strings.ReplaceAll(string(text), ":", " ")) {
		if words := strings.Fields(line); len(words) > 1 {
			f(words)
		}
	}
}

func count(word string) uint64 {
	n, _ := strconv.ParseUint(word, 10, 64)
	return n
}

// uptime is the time since the boot in seconds: it runs on evenly while the
// time of day is being set.
func uptime() (seconds float64) {
	table("/proc/uptime", func(words []string) { seconds, _ = strconv.ParseFloat(words[0], 64) })
	return seconds
}

// processors are how many there are, the time that they were busy, and all of
// their time, since the boot.
func processors() (cores int, busy, total uint64) {
	table("/proc/stat", func(words []string) {
		switch name := words[0]; {
		case name == "cpu":
			for i, word := range words[1:min(len(words), 9)] { // user nice system idle iowait irq softirq steal
				if total += count(word); i != 3 && i != 4 {
					busy += count(word)
				}
			}
		case strings.HasPrefix(name, "cpu"):
			cores++
		}
	})
	return cores, busy, total
}

// memory is in KiB.
func memory() (used, total uint64) {
	has := map[string]uint64{}
	table("/proc/meminfo", func(words []string) { has[words[0]] = count(words[1]) })
	free, told := has["MemAvailable"]
	if !told {
		free = has["MemFree"]
	}
	return has["MemTotal"] - min(free, has["MemTotal"]), has["MemTotal"]
}

// network is what an interface has received and sent, in bytes; of none in
// particular it is all but the loopback's.
func network(iface string) (rx, tx uint64, ok bool) {
	table("/proc/net/dev", func(words []string) {
		if len(words) > 10 && words[1] != "|bytes" && (words[0] == iface || iface == "" && words[0] != "lo") {
			rx, tx, ok = rx+count(words[1]), tx+count(words[9]), true
		}
	})
	return rx, tx, ok
}
