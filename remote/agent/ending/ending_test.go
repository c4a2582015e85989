//go:build linux

package ending

import "testing"

// What nvidia-smi and ps say counts, also when it is read later than they end: to take
// it for nothing would be to say that no process and no memory is left.
func TestWhatAProgramSaidIsHeardAfterItsEnd(t *testing.T) {
	if said := PlainOutput(t.Context(), "sh", "-c", "(sleep 0.5; echo 17) & exit 0"); said != "17\n" {
		t.Errorf("it said %q", said)
	}
}
