package keeping

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/workbench/tunnel"
)

// Forwarding is what dlwb forward was asked for.
type Forwarding struct {
	Port        int
	HTTP        bool
	Reverse     []string
	Keep, Close bool
}

// Check holds the flags against what was named.
func (f Forwarding) Check(what []string) (reverse [][2]int, err error) {
	if f.Port < 0 || f.Port > 65535 {
		return nil, fmt.Errorf("--port %d: ports go from 1 to 65535", f.Port)
	}
	if f.Close {
		return nil, f.onlyCloses()
	}
	if f.Port != 0 && len(what) != 1 {
		return nil, errors.New("--port is for one forward: name one")
	}
	for _, name := range what {
		if err := tunnel.Check(name); err != nil {
			return nil, err
		}
	}
	for _, text := range f.Reverse {
		there, here, given := strings.Cut(text, ":")
		if !given {
			here = there
		}
		port, err := strconv.ParseUint(there, 10, 16)
		local, localErr := strconv.ParseUint(here, 10, 16)
		if err != nil || localErr != nil || port == 0 || local == 0 {
			return nil, fmt.Errorf("--reverse %s: give PORT or PORT:LOCAL, each from 1 to 65535", text)
		}
		reverse = append(reverse, [2]int{int(port), int(local)})
	}
	return reverse, nil
}

// onlyCloses refuses what goes with opening: left unsaid, --close --port 8888 would
// close all.
func (f Forwarding) onlyCloses() error {
	for _, with := range []struct {
		flag  string
		given bool
	}{{"--port", f.Port != 0}, {"--http", f.HTTP}, {"--reverse", len(f.Reverse) > 0}, {"--keep", f.Keep}} {
		if with.given {
			return fmt.Errorf("--close goes without %s: name what to close, as in forward CLUSTER --close jupyter 8265, by name or local port", with.flag)
		}
	}
	return nil
}
