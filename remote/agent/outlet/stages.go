//go:build linux

package outlet

import (
	"os"
	"sync"
	"time"
)

// stages are those that this agent works at. A Put that was given up goes on for a
// moment, and would make again what is removed meanwhile.
var stages = struct {
	sync.Mutex
	puts    map[string]int  // so many Puts are at work in a stage
	dropped map[string]bool // nobody begins in it any more: names are not given twice
}{puts: map[string]int{}, dropped: map[string]bool{}}

// dropWait is how long a Put that was given up is waited for; it is less than whoever
// asks for the removal waits.
const dropWait = 4 * time.Second

// enter begins a Put in a stage. False: that was removed.
func enter(stage string) (leave func(), ok bool) {
	stages.Lock()
	defer stages.Unlock()
	if stages.dropped[stage] {
		return nil, false
	}
	stages.puts[stage]++
	return func() {
		stages.Lock()
		defer stages.Unlock()
		if stages.puts[stage]--; stages.puts[stage] == 0 {
			delete(stages.puts, stage)
		}
	}, true
}

// drop removes a stage.
func drop(stage string) error {
	busy := func() bool {
		stages.Lock()
		defer stages.Unlock()
		stages.dropped[stage] = true
		return stages.puts[stage] > 0
	}
	for end := time.Now().Add(dropWait); busy() && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	return os.RemoveAll(stage)
}
