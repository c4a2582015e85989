package transfer

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"

	_ "github.com/dlwb/dlwb/internal/agentbuilt"
)

func TestMain(m *testing.M) {
	// The flag is parsed later: -parallel on the command line has the last word.
	if err := flag.Set("test.parallel", "12"); err != nil { // they wait more than they work
		panic(err)
	}
	// Nobody's own settings may have a say.
	for name, value := range map[string]string{"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "XDG_CONFIG_HOME": "/nonexistent"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
