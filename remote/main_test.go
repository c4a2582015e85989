package remote

import (
	"flag"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil { // they wait more than they work
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
