package waits

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// dripping gives a byte every so often.
type dripping struct {
	every time.Duration
	ctx   context.Context
	left  int
}

func (d *dripping) Read(p []byte) (int, error) {
	if d.left == 0 {
		return 0, io.EOF
	}
	if err := Pause(d.ctx, d.every); err != nil {
		return 0, err
	}
	d.left--
	return copy(p, "x"), nil
}

// What comes slowly may take as long as it likes; what does not come at all is given up.
func TestWhatComesSlowlyIsReadAndSilenceIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for every, want := range map[time.Duration]string{40 * time.Second: "", 2 * time.Minute: "nothing of it came for 1m"} {
			ctx, s := Silent(t.Context(), time.Minute)
			_, err := io.Copy(io.Discard, s.Reader(&dripping{every, ctx, 10}))
			if err = s.End(err); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("a byte every %s: %v", every, err)
			}
		}
		asked, stop := context.WithCancel(t.Context())
		ctx, s := Silent(asked, time.Minute)
		stop()
		_, err := io.Copy(io.Discard, s.Reader(&dripping{time.Second, ctx, 10}))
		if err = s.End(err); !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %v", err)
		}
	})
}
