package remote

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	_ "github.com/dlwb/dlwb/internal/agentbuilt"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil { // they wait more than they work
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
