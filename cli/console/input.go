package console

import (
	"io"
	"os"

	"github.com/charmbracelet/x/term"
)

// Input is what is typed at a terminal, for a program that goes on when nothing is. Gone
// is called when the terminal is no more: a hang-up need not be heard of that, as under
// nohup, or in a container whose visitor has left.
type Input struct {
	*os.File
	Gone func()
}

// Typed is a terminal's input; nil for what is no terminal.
func Typed(in io.Reader, gone func()) io.Reader {
	if f, is := in.(*os.File); is && term.IsTerminal(f.Fd()) {
		return &Input{f, gone}
	}
	return nil
}

// Read reads what is typed.
func (i *Input) Read(b []byte) (int, error) {
	n, err := i.File.Read(b)
	if err != nil {
		i.Gone()
	}
	return n, err
}
