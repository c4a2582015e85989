//go:build linux

package host

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/dlwb/dlwb/internal/hostclaim"
)

// usersMost is how many processes on GPUs are told of.
const usersMost = 128

// gpus tells the GPUs and who works on them. silent: nvidia-smi is there and
// does not answer.
func gpus() (all []hostclaim.GPU, users []hostclaim.GPUUser, silent bool) {
	if _, err := exec.LookPath("nvidia-smi"); err != nil {
		return nil, nil, false
	}
	list, err := ask(lookLimit, "nvidia-smi", "-L")
	if err != nil {
		return nil, nil, true
	}
	numbers := map[string]int{}
	for line := range strings.Lines(list) {
		if g, ok := parseGPU(line); ok {
			all = append(all, g)
			numbers[g.UUID] = g.Number
		}
	}
	apps, _ := ask(lookLimit, "nvidia-smi", "--query-compute-apps=pid,used_memory,gpu_uuid", "--format=csv,noheader,nounits")
	for line := range strings.Lines(apps) {
		if u, ok := parseUser(line, numbers); ok && len(users) < usersMost {
			users = append(users, u)
		}
	}
	return all, users, false
}

// parseGPU reads a line of nvidia-smi -L: "GPU 0: NVIDIA A10G (UUID: GPU-…)".
func parseGPU(line string) (hostclaim.GPU, bool) {
	head, rest, ok := strings.Cut(strings.TrimSpace(line), ": ")
	number, is := strings.CutPrefix(head, "GPU ")
	n, err := strconv.Atoi(number)
	if !ok || !is || err != nil {
		return hostclaim.GPU{}, false
	}
	name, uuid, _ := strings.Cut(rest, " (UUID: ")
	return hostclaim.GPU{Number: n, Name: name, UUID: strings.TrimSuffix(uuid, ")")}, true
}

// parseUser reads "PID, MIB, UUID"; the GPU is not known when that is not one of
// those in the list, such as a part of one. Whose process has ended is nobody.
func parseUser(line string, numbers map[string]int) (hostclaim.GPUUser, bool) {
	f := append(strings.Split(strings.TrimSpace(line), ", "), "", "")
	pid, err := strconv.Atoi(f[0])
	if err != nil || pid <= 0 {
		return hostclaim.GPUUser{}, false
	}
	u := hostclaim.GPUUser{PID: pid, Number: -1, User: userName(owner("/proc/"+f[0]), pid)}
	u.MiB, _ = strconv.ParseInt(f[1], 10, 64)
	if n, known := numbers[f[2]]; known {
		u.Number = n
	}
	return u, u.User != ""
}

// owner is the user whose file or directory it is; -1 when it is not there.
func owner(path string) int {
	info, err := os.Lstat(path)
	if err != nil {
		return -1
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1
	}
	return int(stat.Uid)
}
