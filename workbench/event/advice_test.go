package event

import (
	"errors"
	"fmt"
	"testing"
)

type advised struct{ error }

func (advised) Advice() string { return "log in again" }

// What an error says is to be done is not lost where a fault is made of it.
func TestAFaultThatIsMadeOfAnErrorKeepsItsAdvice(t *testing.T) {
	if f := FaultOf(fmt.Errorf("look: %w", advised{errors.New("no session")})); f.Next != "log in again" || f.Why != "look: no session" {
		t.Errorf("%+v", f)
	}
	if f := FaultOf(errors.New("no")); f.Next != "" {
		t.Errorf("%+v", f)
	}
}
