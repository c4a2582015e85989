//go:build unix

package metrics

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// cpu is the time that this process has had on any core, so that the figures
// hold on a busy machine too.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// plainLog is what a training prints: mostly its lines of metrics, some others.
func plainLog() []byte {
	var b bytes.Buffer
	for i := range 2000 {
		fmt.Fprintf(&b, "2024-05-01 12:%02d:%02d,123 INFO step %d loss: %.4f lr: %.2e tokens/s: %d\n", i/60%60, i%60, i, 4/(1+float64(i)), 1e-3, 80000+i)
		fmt.Fprintf(&b, "2024-05-01 12:%02d:%02d,223 INFO worker %d: loaded shard %d of 100 from data/part-%05d.bin\n", i/60%60, i%60, i%8, i%100, i)
		fmt.Fprintf(&b, "[rank%d]: DEBUG gradient bucket %d rebuilt in %d.%d ms (%d parameters)\n", i%8, i%12, i%9, i%10, i*1024)
		if i%100 == 99 {
			fmt.Fprintf(&b, "Epoch %d/20: train_loss: %.4f - val_loss: %.4f - val_acc: %.2f%%\n", i/100, 0.5, 0.6, 87.5)
		}
	}
	return b.Bytes()
}

func benchmarkLines(b *testing.B, text []byte, user ...UserMetric) {
	r := NewReader(user)
	lines := bytes.Count(text, []byte{'\n'})
	b.ReportAllocs()
	before := cpu()
	for b.Loop() {
		for p := text; len(p) > 0; {
			n := min(len(p), 64<<10)
			r.Feed(p[:n], time.Time{})
			p = p[n:]
		}
	}
	b.ReportMetric(float64(b.N)*float64(lines)/(cpu()-before).Seconds(), "lines/cpu-s")
}

func BenchmarkReader(b *testing.B) {
	var user []UserMetric
	for i := range 10 {
		user = append(user, UserMetric{fmt.Sprintf("u%d", i), fmt.Sprintf(`metric%d[:=]\s*([0-9.]+)`, i)})
	}
	user[0].Regex = `loss: (\d+\.\d+)`
	b.Run("plain", func(b *testing.B) { benchmarkLines(b, plainLog()) })
	b.Run("ten expressions", func(b *testing.B) { benchmarkLines(b, plainLog(), user...) })
	b.Run("no metrics", func(b *testing.B) {
		benchmarkLines(b, []byte(strings.Repeat("2024-05-01 12:30:45,123 INFO worker 3: loaded shard 17 of 100 from data/part-00017.bin\n", 4000)))
	})
	b.Run("only metrics", func(b *testing.B) {
		benchmarkLines(b, []byte(strings.Repeat("epoch 1/4 step 20/300 loss: 2.5000 lr: 1.00e-03 tokens/s: 81234\n", 4000)))
	})
}
