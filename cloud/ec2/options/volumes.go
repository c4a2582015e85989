package options

import (
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// Disk is a disk for data, as a profile names it.
type Disk struct {
	Path string
	// IDs are EBS volumes that exist, one for each machine; none: GiB is the size of
	// one that is made with each machine.
	IDs []string
	GiB int32
	// Store: it is the instance store.
	Store bool
}

// instanceStore is the word for the disks that a type has by itself.
const instanceStore = "instance-store"

var (
	mountForm  = pattern.New(`^/[A-Za-z0-9._/-]{1,200}$`)
	volumeForm = pattern.New(`^vol-[0-9a-f]{8,17}(,vol-[0-9a-f]{8,17})*$`)
	sizeForm   = pattern.New(`^([0-9]{1,6}) ?(GB|GiB|G|TB|TiB|T)$`)
)

// Disks are the data volumes in the order of their paths.
func (m Machines) Disks() []Disk {
	var all []Disk
	for _, p := range slices.Sorted(maps.Keys(m.Volumes)) {
		d := Disk{Path: p}
		switch word := m.Volumes[p]; {
		case word == instanceStore:
			d.Store = true
		case volumeForm.MatchString(word):
			d.IDs = strings.Split(word, ",")
		default:
			d.GiB = gib(word)
		}
		all = append(all, d)
	}
	return all
}

// gib is a size in GiB, rounded up; 0 where it is none.
func gib(word string) int32 {
	m := sizeForm.FindStringSubmatch(word)
	if m == nil {
		return 0
	}
	n, _ := strconv.ParseInt(m[1], 10, 64)
	unit := map[string]int64{"G": 1 << 30, "GiB": 1 << 30, "GB": 1e9, "T": 1 << 40, "TiB": 1 << 40, "TB": 1e12}[m[2]]
	return int32((n*unit + 1<<30 - 1) >> 30)
}

// largest is the size of the largest gp3 volume, in GiB.
const largest = 64 << 10

// reserved are places that a machine is made of.
var reserved = []string{"/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/opt", "/proc", "/root", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var"}

// badVolume is why a line of machines.data_volumes makes no sense; empty: it does.
func badVolume(p, word string) string {
	switch {
	case !mountForm.MatchString(p) || path.Clean(p) != p:
		return "nothing can be mounted at " + strconv.Quote(p)
	case slices.Contains(reserved, p) || strings.HasPrefix(p, "/var/lib/dlwb") || strings.HasPrefix(p, "/proc/") || strings.HasPrefix(p, "/sys/") || strings.HasPrefix(p, "/dev/"):
		return "a disk at " + p + " would hide what the machine needs"
	case word == instanceStore || volumeForm.MatchString(word):
		return ""
	case gib(word) == 0 || gib(word) > largest:
		return strconv.Quote(word) + " is neither a volume nor a size from 1 GiB to 64 TiB"
	}
	return ""
}
