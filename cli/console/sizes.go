package console

import (
	"os"

	"github.com/charmbracelet/x/term"
)

// Sizes tells each new size of a terminal, in cells, until release is called.
func Sizes(tty *os.File) (sizes <-chan [2]int, release func()) {
	changed, stop := SizeChanges()
	told := make(chan [2]int, 1)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-changed:
			case <-done:
				return
			}
			w, h, err := term.GetSize(tty.Fd())
			if err != nil {
				continue
			}
			select {
			case told <- [2]int{w, h}:
			case <-done:
				return
			}
		}
	}()
	return told, func() { stop(); close(done) }
}
