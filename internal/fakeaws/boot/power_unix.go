//go:build unix

package boot

import (
	"bufio"
	"os"
	"strings"
	"syscall"
)

// terminate asks a node to end.
const terminate = syscall.SIGTERM

// hearPower listens to the machines that power themselves off: a line in a
// named pipe, which a shell can write without any other program.
func (r *Rig) hearPower() (stop func(), err error) {
	if err := syscall.Mkfifo(r.powerFile(), 0o600); err != nil {
		return nil, &os.PathError{Op: "make the pipe", Path: r.powerFile(), Err: err}
	}
	// Open for writing too: else every writer's end would be the end.
	pipe, err := os.OpenFile(r.powerFile(), os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			id, what, _ := strings.Cut(lines.Text(), " ")
			if what == "poweroff" {
				r.poweredOff(id)
			}
		}
	}()
	return func() { _ = pipe.Close(); <-ended }, nil
}
