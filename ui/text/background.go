package text

import (
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// LightBackground is whether a terminal says in COLORFGBG ("0;15", of the 16 colours)
// that what it writes on is light. Some say so and answer no question about it.
func LightBackground(env tea.EnvMsg) bool {
	said := env.Getenv("COLORFGBG")
	colour, err := strconv.Atoi(said[strings.LastIndexByte(said, ';')+1:])
	return err == nil && (colour == 7 || colour > 8 && colour < 16)
}
