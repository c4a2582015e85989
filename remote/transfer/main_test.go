package transfer

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	_ "github.com/dlwb/dlwb/internal/agentbuilt"
)

func TestMain(m *testing.M) {
	// The flag is parsed later: -parallel on the command line has the last word.
	if err := flag.Set("test.parallel", "12"); err != nil { // they wait more than they work
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
