package locks

import (
	"os"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// One who only looks whether a lock is held is no holder, however long a busy machine lets
// him stand there.
func TestALookIsNoHolder(t *testing.T) {
	d := Dir(t.TempDir())
	look := flock.New(d.path("c", Watch), flock.SetFlag(os.O_RDONLY|os.O_CREATE))
	if ok, err := look.TryRLock(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	time.AfterFunc(200*time.Millisecond, func() { _ = look.Close() })
	c, err := d.Claim("c", Watch)
	if c == nil || err != nil {
		t.Fatalf("%v, %v", c, err)
	}
	if again, err := d.Claim("c", Watch); again != nil || err != nil || !d.Held("c", Watch) || d.Holder("c", Watch) != os.Getpid() {
		t.Errorf("it is held by %d: %v, %v", d.Holder("c", Watch), again, err)
	}
	c.Release()
	if d.Held("c", Watch) {
		t.Error("it is still held")
	}
}
