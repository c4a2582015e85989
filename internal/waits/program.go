package waits

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"time"
)

// killGrace is how long a program that was killed has to be gone.
const killGrace = time.Second

// Output runs a program of this machine and gives what it says. It ends with
// the wait, and then waits for nothing: a program that hangs in the kernel, as
// nvidia-smi does on a driver that is wedged, can't even be killed. set may
// change how it is started; nil: it is started as it is.
func Output(ctx context.Context, w Wait, set func(*exec.Cmd), name string, args ...string) (out, errs []byte, err error) {
	ctx, cancel := Within(ctx, w)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = killGrace
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if set != nil {
		set(cmd)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Run() }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		select {
		case err = <-ended:
		case <-time.After(2 * killGrace):
			return nil, nil, fmt.Errorf("%s hangs: %w", name, context.Cause(ctx))
		}
	}
	if cause := context.Cause(ctx); err != nil && cause != nil && cause != context.Canceled {
		err = cause
	}
	return stdout.Bytes(), stderr.Bytes(), err
}
