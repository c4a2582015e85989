//go:build linux

package telemetry

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/remote/wire"
)

const (
	gpusMost = 64
	// smiLimit is how long nvidia-smi may take: a driver that hangs is not asked
	// again.
	smiLimit = 10 * time.Second
)

// Facts tells what the node is.
func Facts(ctx context.Context, _ wire.FactsRequest) (wire.NodeFacts, error) {
	var f wire.NodeFacts
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		f.Host = unix.ByteSliceToString(name.Nodename[:])
		f.Kernel = unix.ByteSliceToString(name.Sysname[:]) + " " + unix.ByteSliceToString(name.Release[:])
	}
	f.System = strings.Trim(behind("/etc/os-release", "\nPRETTY_NAME=", "\n"), `"`)
	f.Cores, _, _ = processors()
	_, kib := memory()
	f.Memory = int64(kib) << 10
	if gpus := askSMI(ctx, "--query-gpu=driver_version,name", "--format=csv,noheader"); gpus != "" {
		for line := range strings.Lines(gpus) {
			driver, gpu, _ := strings.Cut(strings.TrimSpace(line), ", ")
			if f.Driver = driver; len(f.GPUs) < gpusMost {
				f.GPUs = append(f.GPUs, gpu)
			}
		}
		f.CUDA = strings.TrimSpace(between(askSMI(ctx), "CUDA Version:", "|"))
	}
	// An image of EC2 says which one it is only to the machine itself.
	if _, err := os.Stat("/var/lib/cloud/data/instance-id"); err == nil {
		const told = "/run/cloud-init/instance-data.json"
		f.Image = between(cmp.Or(behind(told, `"ami-id":`, "\n"), behind(told, `"ami_id":`, "\n")), `"`, `"`)
	}
	return f, nil
}

// behind is what a file has behind a mark.
func behind(file, mark, end string) string {
	text, _ := os.ReadFile(file)
	return between("\n"+string(text), mark, end)
}

func between(text, mark, end string) string {
	_, text, _ = strings.Cut(text, mark)
	text, _, _ = strings.Cut(text, end)
	return text
}

// askSMI is what nvidia-smi says to one question; "" where it fails.
func askSMI(ctx context.Context, args ...string) string {
	runtime.LockOSThread() // see childAttr
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithTimeout(ctx, smiLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "nvidia-smi", args...)
	cmd.SysProcAttr, cmd.WaitDelay = childAttr(), time.Second
	cmd.Cancel = func() error { return endChild(cmd) }
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(out)
}
