package job

import (
	"context"
	"time"

	"github.com/dlwb/dlwb/internal/waits"
)

// reachEvery is how often it is asked whether somebody answers.
const reachEvery = 5 * time.Second

// Reach asks again and again, until ctx ends, and tells the first answer and each that
// is another than the one before: ask gives nil where somebody answers.
func Reach(ctx context.Context, ask func(context.Context) error, news func(connected bool, why string)) {
	was, told := false, false
	for ctx.Err() == nil {
		err := ask(ctx)
		if ctx.Err() != nil {
			return
		}
		why := ""
		if err != nil {
			why = err.Error()
		}
		if is := err == nil; is != was || !told {
			was, told = is, true
			news(is, why)
		}
		_ = waits.Pause(ctx, reachEvery)
	}
}
