package remote

import "testing"

func TestForgottenListenerHearsNothing(t *testing.T) {
	n := Open(Target{Name: "node0"})
	defer n.Close()
	var first, second int
	forget := n.OnState(func(bool, string) { first++ })
	defer n.OnState(func(bool, string) { second++ })()
	n.tell(true, "")
	forget()
	n.tell(false, "cut")
	if first != 1 || second != 2 {
		t.Errorf("the forgotten one heard %d times, the other %d times", first, second)
	}
}
