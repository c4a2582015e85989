package awsapi

import (
	"os"
	"time"
)

// defaultSettle is longer than what AWS has made is ever seen to stay hidden.
const defaultSettle = 2 * time.Minute

// Settle is for how long a thing that AWS was asked for may stay unseen: until then,
// that it is not shown proves nothing. It is shorter for emulators, which show sooner
// what they made (DLWB_SETTLE).
func Settle() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("DLWB_SETTLE")); err == nil && d > 0 {
		return d
	}
	return defaultSettle
}
