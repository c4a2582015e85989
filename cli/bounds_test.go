package cli

import (
	"os"
	"time"

	"github.com/dlwb/dlwb/sshconn"
)

// shortBounds makes the bounds of connections short in a dlwb that a test
// starts.
const shortBounds = "DLWB_TEST_SHORT_BOUNDS"

func shortenBounds() {
	if os.Getenv(shortBounds) != "" {
		sshconn.Standard = sshconn.Bounds{
			Dial: 2 * time.Second, Open: time.Second, Reply: 2 * time.Second, Every: 500 * time.Millisecond, Answer: time.Second,
			Shell: 2 * time.Second, Quiet: 3 * time.Second, Script: 4 * time.Second,
		}
	}
}
