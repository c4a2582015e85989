package console

import (
	"os"
	"runtime"
)

// Dumb reports whether the terminal takes no escape sequences, or nothing is known of
// it: a serial line without a getty, a container, env -i. Windows has no TERM at all.
func Dumb() bool {
	name := os.Getenv("TERM")
	return name == "dumb" || name == "" && runtime.GOOS != "windows"
}
