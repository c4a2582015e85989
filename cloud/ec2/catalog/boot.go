package catalog

import (
	"strings"
	"time"
)

// slowBoot is how long the types of these beginnings may take to their first ssh
// answer: they test terabytes of memory and many cards before they boot. The
// others have ten minutes.
var slowBoot = []struct {
	beginning string
	limit     time.Duration
}{
	{"p4d", 25 * time.Minute}, {"p4de", 25 * time.Minute}, {"p5", 30 * time.Minute}, {"p6", 40 * time.Minute}, {"u-", 40 * time.Minute},
}

// BootTime is how long a machine of a type may take to answer; 0: the usual.
func BootTime(instance string) time.Duration {
	if strings.Contains(instance, ".metal") {
		return 30 * time.Minute
	}
	for _, s := range slowBoot {
		if strings.HasPrefix(instance, s.beginning) {
			return s.limit
		}
	}
	return 0
}
