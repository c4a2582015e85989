package pattern

import (
	"sync"
	"testing"
)

func TestAPatternIsCompiledOnceByWhoeverNeedsItFirst(t *testing.T) {
	p := New(`^a(b+)$`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if m := p.FindStringSubmatch("abb"); len(m) != 2 || m[1] != "bb" {
				t.Errorf("found %q", m)
			}
		})
	}
	all.Wait()
	if p.String() != `^a(b+)$` {
		t.Errorf("it is %s", p)
	}
}

func TestAWrongPatternIsNoTroubleBeforeItIsUsed(t *testing.T) {
	p := New(`(`)
	defer func() {
		if recover() == nil {
			t.Error("it matched something")
		}
	}()
	p.MatchString("")
}
