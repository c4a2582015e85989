package sshconn

import (
	"os"
	"runtime/debug"
	"sync"
)

// Each connection holds some hundred kilobytes that live as long as it does. By
// default Go's collector lets as much garbage come up as there is alive: with hundreds
// of connections more than a laptop should give for it. From crowdSize connections on
// it runs at half of that, which takes a little more of the processor only while much
// is allocated. Who has set GOGC has decided otherwise.

const (
	crowdSize    = 64
	crowdPercent = 50
)

// crowd counts the connections of this process.
var crowd struct {
	sync.Mutex
	size   int
	before int // the percentage before it was a crowd
}

// joins counts a connection, and leaves one that has ended.
func joins()  { count(1) }
func leaves() { count(-1) }

func count(more int) {
	crowd.Lock()
	defer crowd.Unlock()
	was := crowd.size >= crowdSize
	crowd.size += more
	is := crowd.size >= crowdSize
	switch {
	case was == is || os.Getenv("GOGC") != "":
	case is:
		crowd.before = debug.SetGCPercent(crowdPercent)
	default:
		debug.SetGCPercent(crowd.before)
	}
}
