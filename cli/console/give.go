package console

import (
	"errors"
	"os"
	"os/exec"
	"time"

	"github.com/charmbracelet/x/term"
)

// givenLimit is how long a program has to end when it is told to.
const givenLimit = 2 * time.Second

// Give gives the terminal to a program of this machine until that has ended, and takes it
// back as it was. What is typed and what it signals, Ctrl-C, are the program's alone. It
// gives the program's exit code.
func Give(program *exec.Cmd, in, out *os.File) (code int, err error) {
	program.Stdin, program.Stdout, program.Stderr = in, out, out
	program.WaitDelay = givenLimit
	state, err := term.GetState(in.Fd())
	if err != nil {
		return -1, err
	}
	back := hand(program, in)
	err = program.Run()
	back()
	_ = term.Restore(in.Fd(), state)
	if ended := new(exec.ExitError); errors.As(err, &ended) && ended.ExitCode() > 0 {
		return ended.ExitCode(), nil
	}
	return 0, err
}
