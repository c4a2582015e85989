//go:build linux

package hostsstory

import (
	"flag"
	"os"
	"sync"
	"testing"

	"github.com/dlwb/dlwb/internal/testbed"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "16"); err != nil { // they wait more than they work
		panic(err)
	}
	code := m.Run()
	if programDir != "" {
		_ = os.RemoveAll(programDir)
	}
	os.Exit(code)
}

// crowdSize is how many hosts there are for those that go on beside each other.
const crowdSize = 40

// crowd is one bed for the stories that wait the longest, since a machine has one bed at
// a time. Each has hosts of its own there; the last one to end removes the bed.
var crowd struct {
	sync.Mutex
	bed         *testbed.Bed
	next, users int
}

// someHosts are n hosts of the crowd, from a number on. Its test goes on beside others,
// once those that have a bed of their own have ended.
func someHosts(t *testing.T, n int) (bed *testbed.Bed, from int) {
	t.Helper()
	t.Parallel()
	crowd.Lock()
	defer crowd.Unlock()
	if crowd.bed == nil {
		crowd.bed, crowd.next = upHosts(t, crowdSize), 0
	}
	if crowd.next+n > crowdSize {
		t.Fatalf("the crowd has %d hosts, of which %d are taken: %d more are none", crowdSize, crowd.next, n)
	}
	from, crowd.next = crowd.next, crowd.next+n
	crowd.users++
	t.Cleanup(func() {
		crowd.Lock()
		defer crowd.Unlock()
		if crowd.users--; crowd.users == 0 {
			if err := crowd.bed.Down(); err != nil {
				t.Error(err)
			}
			crowd.bed = nil
		}
	})
	return crowd.bed, from
}
