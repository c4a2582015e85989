package text

import (
	"time"
)

// Look is what drawing needs to know of the screen besides what is drawn: its
// inks and signs, and the moment.
type Look struct {
	Styles *Styles
	Now    time.Time
	// Spin counts the turns of spinners.
	Spin int
	// ASCII says that the terminal shows ASCII only, Colourless that it shows no
	// colour.
	ASCII, Colourless bool
}

var spinFrames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// Spinner is the present sign of something that goes on.
func (l Look) Spinner() string { return spinFrames[l.Spin%len(spinFrames)] }
