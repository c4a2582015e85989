package metrics

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dlwb/dlwb/metrics/screen"
)

// told writes points as "name=value@step/epoch", a "-" for what is not known.
func told(points []Point) string {
	var all []string
	for _, p := range points {
		s := fmt.Sprintf("%s=%v", p.Name, p.Value)
		if p.Step != nil {
			s += fmt.Sprintf("@%d", *p.Step)
		}
		if p.Epoch != nil {
			s += fmt.Sprintf("/%v", *p.Epoch)
		}
		all = append(all, s)
	}
	return strings.Join(all, " ")
}

func read(text string, user ...UserMetric) string {
	r := NewReader(user)
	return told(append(r.Feed([]byte(text), time.Time{}), r.End(time.Time{})...))
}

func TestPointsAreFoundInWhatScriptsPrint(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"the example":        {"epoch 1/4 step 20/300 loss: 2.5000 lr: 1.00e-03 tokens/s: 81234", "loss=2.5@20/1 lr=0.001@20/1 tokens/s=81234@20/1"},
		"its validation":     {"epoch 1/4 step 75/300 val_loss: 2.2541 (saved outputs/checkpoint.json)", "val/loss=2.2541@75/1"},
		"its first step":     {"step 1 loss: 4.1712, measuring the speed", "loss=4.1712@1"},
		"equal signs":        {"step=3, loss=0.25, val_acc=0.9", "loss=0.25@3 val/acc=0.9@3"},
		"a colon after":      {"step 250: train loss 1.7, val loss 1.8", "train/loss=1.7@250 val/loss=1.8@250"},
		"brackets":           {"Epoch: [0][ 10/100]\tLoss 6.9e+00 (6.95e+00)\tAcc@1 0.52", "loss=6.9@10/0 acc@1=0.52@10/0"},
		"epoch alone":        {"Epoch 3\nloss: 0.5", "loss=0.5/3"},
		"a Python dict":      {"{'loss': 0.5, 'grad_norm': 1.5, 'learning_rate': 5e-05, 'epoch': 0.5}", "loss=0.5/0.5 grad_norm=1.5/0.5 lr=5e-05/0.5"},
		"quoted values":      {"{'eval_loss': '0.25', 'epoch': '2'}", "eval/loss=0.25/2"},
		"JSON":               {`{"step": 7, "train/loss": 1.25, "trainer/global_step": 9}`, "train/loss=1.25@7"},
		"words with blanks":  {"iter 5 learning rate 0.1 grad norm: 2.5 loss 3", "lr=0.1@5 grad_norm=2.5@5 loss=3@5"},
		"a split before":     {"Test set: Average loss: 0.0493, Accuracy: 9841/10000 (98%)", "test/loss=0.0493 test/accuracy=98.41"},
		"a split for all":    {"epoch 2 val: loss 0.25 acc 0.5 lr 0.1", "val/loss=0.25/2 val/acc=0.5/2 lr=0.1/2"},
		"percent":            {"epoch 1 accuracy: 95.5%", "accuracy=95.5/1"},
		"thousands":          {"step 1,000/2,000 loss 2 tokens/s=81,234.5", "loss=2@1000 tokens/s=81234.5@1000"},
		"capitals":           {"Loss: 0.5 LR: 0.1 Val_Loss: 0.25", "loss=0.5 val/loss=0.25"},
		"splits":             {"validation-error: 0.25 dev_loss=1 loss/train=2 acc_val: 3", "val/error=0.25 val/loss=1 train/loss=2 val/acc=3"},
		"not finite":         {"step 1 loss: nan\nstep 2 loss: -inf\nstep 3 loss: inf\nstep 4 loss: -nan", "loss=NaN@1 loss=-Inf@2 loss=+Inf@3 loss=NaN@4"},
		"too big a number":   {"step 1 loss: 1e999", "loss=+Inf@1"},
		"colours":            {"\x1b[32mstep\x1b[0m 2 \x1b[1;31mloss\x1b[0m: \x1b(B\x1b[m0.5\x1b]0;title loss: 7\x07", "loss=0.5@2"},
		"a progress bar":     {"step 1 loss: 9\rstep 2 loss: 8\rstep 3 loss: 7\r\nstep 4 loss: 6\n", "loss=9@1 loss=8@2 loss=7@3 loss=6@4"},
		"no last newline":    {"step 1 loss: 9", "loss=9@1"},
		"the first counts":   {"step 1 loss: 1 (loss: 2)", "loss=1@1"},
		"a sentence":         {"after epoch 2 the loss: 0.5.", "loss=0.5/2"},
		"unknown, twice":     {"step 1 sharpness: 3\nstep 2 sharpness: 4.5", "sharpness=3@1 sharpness=4.5@2"},
		"unknown, by a loss": {"loss: 1.5 sharpness: 3\nloss: 1.4 sharpness: 4", "loss=1.5 loss=1.4"},
		"a loss of parts":    {"step 1 loss_cls: 1 box_loss: 2 total_loss: 3", "loss_cls=1@1 box_loss=2@1 total_loss=3@1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := read(c.text); got != c.want {
				t.Errorf("%q\n got %s\nwant %s", c.text, got, c.want)
			}
		})
	}
}

// What merely looks like a metric is printed twice here, with a step and
// beside a loss, since a second time is what makes an unknown name a series.
func TestWhatIsNoMetricIsNotInvented(t *testing.T) {
	for name, text := range map[string]string{
		"version": "torch: 1.13.1 version: 2 v1.2 python=3.11 cuda: 11.8.0 release=v2",
		"date":    "date: 2024-05-01 started=2024/05/01 day: 3",
		"time":    "at: 12:30:45 time: 0.25 clock=12:30 took: 3.5s elapsed: 7 now=12:30:45,123",
		"shape":   "shape: (3, 224, 224) input=3x224x224 size=[3,4] dims: 3×4",
		"eta":     "eta: 0:12:30 ETA: 45 remaining=3 left: 5 min",
		"address": "host: 10.0.0.1 addr=127.0.0.1:29500 url: http://127.0.0.1:80/ master=10.0.0.1",
		"size":    "memory: 1234 mem=10.2GB used: 10.2 GiB ckpt: 48 KB vram=3.5G peak: 12 MB",
		"port":    "port: 29500 master_port=29500 MASTER_PORT: 29500",
		"count":   "samples: 640/60000 done: 3/10 files=12 item: 3 of 10 batches: 7 total: 100",
		"place":   "rank: 1 local_rank=0 world_size: 2 pid=12345 gpu: 3 device: cuda:0 node=1",
		"setting": "seed: 42 batch_size=32 num_layers: 12 hidden_size=768 max_grad: 1 warmup_steps: 100",
		"hex":     "hash: 0x1f commit=12ab34 id: 7f",
		"range":   "span: 1-5 pages=3..7 ratio: 16:9",
		"decimal": "komma: 0,345",
		"word":    "value: 3rd next=nanometer more: infinite",
		"hidden":  "étape: 3 a…b=4",
	} {
		t.Run(name, func(t *testing.T) {
			line := "step %d loss: 0.5 " + text + "\n"
			if got := read(fmt.Sprintf(line+line, 1, 2)); got != "loss=0.5@1 loss=0.5@2" {
				t.Errorf("%q gave %s", text, got)
			}
			if got := read(text + "\n" + text + "\n"); got != "" {
				t.Errorf("%q alone gave %s", text, got)
			}
		})
	}
}

func TestLinesThatAreNotAboutTrainingGiveNothing(t *testing.T) {
	for _, line := range []string{
		"usage: 5", "Error: 5", "error 404", "return 0", "    return 1.5", "map: 3", "score=7", "lr: 0.1",
		"Namespace(epochs=10, lr=0.1, momentum=0.9, iou=0.7)", "epochs: 10", "steps=1000",
		"Successfully installed torch-2.1.0 numpy==1.26", "Listening on 0.0.0.0:6006", "loss of 3 connections", "loss 3",
		"Validation error: 5", "2024-05-01 12:30:45,123 INFO loss_weight: 0.5 grad_acc=4", "127.0.0.1 - - [01/May/2024 12:30:45]",
		"checkpoint-epoch=3-val_loss=0.25.ckpt", "loss: {loss:.4f}", "best epoch: 3", "batch: 32",
		"step 3: 1 file copied", "Time cost=115.123",
	} {
		if got := read(line + "\n" + line + "\n"); got != "" {
			t.Errorf("%q gave %s", line, got)
		}
	}
}

func TestUnknownNamesPrintedOnceAreSettings(t *testing.T) {
	if got := read("epoch 1 sharpness: 3\nepoch 1 sharpness: 3 depthiness: 2\n"); got != "" {
		t.Errorf("lines of different shapes gave %s", got)
	}
}

func TestStepsThatBeginAnewInEachEpochAreMadeGlobal(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"global": {"epoch 1 step 50/200 loss: 1\nepoch 1 step 100/200 loss: 1\nepoch 2 step 150/200 loss: 1",
			"loss=1@50/1 loss=1@100/1 loss=1@150/2"},
		"in the epoch": {"epoch 1/2 step 50/100 loss: 1\nepoch 1/2 step 90/100 loss: 1\nepoch 2/2 step 50/100 loss: 1\nepoch 2/2 step 100/100 loss: 1",
			"loss=1@50/1 loss=1@90/1 loss=1@150/2 loss=1@200/2"},
		"epoch on its own line": {"Epoch 1/2\nstep 30/40 loss: 1\nEpoch 2/2\nstep 30/40 loss: 1\n",
			"loss=1@30/1 loss=1@70/2"},
		"once an epoch": {"epoch 1/3 step 100/100 loss: 1\nepoch 2/3 step 100/100 loss: 1\nepoch 3/3 step 100/100 loss: 1",
			"loss=1@100/1 loss=1@200/2 loss=1@300/3"},
		"from 0, without a total": {"epoch 0 step 0 loss: 1\nepoch 0 step 10 loss: 1\nepoch 1 step 0 loss: 1\nepoch 1 step 10 loss: 1",
			"loss=1@0/0 loss=1@10/0 loss=1@20/1 loss=1@30/1"},
		"batches": {"epoch 1/2 batch 30/40 loss: 1\nepoch 2/2 batch 30/40 loss: 1", "loss=1@30/1 loss=1@70/2"},
		"a resumed run": {"step 50 loss: 1\nstep 100 loss: 1\nstep 80 loss: 1\nstep 120 loss: 1",
			"loss=1@50 loss=1@100 loss=1@80 loss=1@120"},
		"resumed in an epoch before": {"epoch 1 step 9/10 loss: 1\nepoch 2 step 8/10 loss: 1\nepoch 3 step 4/10 loss: 1\nepoch 2 step 5/10 loss: 1",
			"loss=1@9/1 loss=1@18/2 loss=1@24/3 loss=1@15/2"},
		"validation has steps of its own": {"epoch 1 step 50 loss: 1\nval step 3 val_loss: 2\nepoch 1 step 60 loss: 1",
			"loss=1@50/1 val/loss=2@50/1 loss=1@60/1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := read(c.text); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestProgressSaysHowFarTheRunIs(t *testing.T) {
	for text, want := range map[string]Progress{
		"epoch 2/4 step 150/300 loss: 1\n":                                 {2, 4, 150, 300, false},
		"epoch 1/4 step 76/301 loss: 1\n":                                  {1, 4, 76, 301, false}, // 301 don't divide by 4
		"epoch 0/4 step 75/300 loss: 1\n":                                  {0, 4, 75, 300, false},
		"Epoch 3/10\n":                                                     {3, 10, 0, 0, true},
		"epoch 1/10 step 50/100 loss: 1\n":                                 {1, 10, 50, 1000, false}, // half of the run is not the first of ten epochs
		"epoch 1/2 step 9/10 loss: 1\nepoch 2/2 step 5/10 loss: 1\n":       {2, 2, 15, 20, false},
		"step 5\nbest epoch 3 max step 900, warmup steps 100, epochs: 7\n": {0, 0, 5, 0, false},
		"step 99999999999999999999 epoch -3 step nan\n":                    {},
	} {
		r := NewReader(nil)
		r.Feed([]byte(text), time.Time{})
		if got := r.Progress(); got != want {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
	}
}

func TestTheUsersExpressionGoesFirst(t *testing.T) {
	user := []UserMetric{{"val/acc", `top-1 (\d+\.\d+)`}, {"loss", `objective=(\S+)`}, {"broken", `(`}, {"groupless", `x`}}
	got := read("step 3 loss: 9 val_acc: 1 objective=1,000.5 top-1 75.25\nstep 4 objective=n/a top-1 80.5\n", user...)
	if want := "val/acc=75.25@3 loss=1000.5@3 val/acc=80.5@4"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOrdinalsCountThePointsOfEachSeries(t *testing.T) {
	r := NewReader(nil)
	last := map[string]int64{}
	for _, p := range r.Feed([]byte("step 1 loss: 1 odd: 1\nstep 2 loss: 2\nstep 3 loss: 2 odd: 2\nstep 4 loss: 2 odd: 4\n"), time.Unix(5, 0)) {
		if p.Ordinal != last[p.Name] || !p.Time.Equal(time.Unix(5, 0)) {
			t.Errorf("%+v: want ordinal %d", p, last[p.Name])
		}
		last[p.Name]++
	}
	if last["loss"] != 4 || last["odd"] != 3 {
		t.Errorf("points of each series: %v", last)
	}
}

// scraps are what lines are made of that a reader could trip over.
var scraps = []string{
	"epoch 1/4 step 20/300 loss: 2.5 lr: 1e-3 tokens/s: 81,234\n", "val_loss=0.5\n", "epoch 2/4 step 3/300 loss: 1\r", "\r", "\n", "\r\n",
	"\x1b[32mloss\x1b[0m: 0.25", "\x1b]0;t\x07", "\x1b", " ", "loss: nan", "step 5: ", "other=3 ", "acc 0.5", "é", "Epoch: [0][ 10/100]", strings.Repeat("x", 3000),
}

func TestCutsOfTheBytesChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(scraps), 1, 40).Draw(t, "pieces"), ""))
		if rapid.IntRange(0, 9).Draw(t, "long") == 0 {
			text = append(bytes.Repeat([]byte("y"), screen.MaxLine-rapid.IntRange(0, 40).Draw(t, "room")), text...)
		}
		whole, cut := NewReader(nil), NewReader(nil)
		want := append(whole.Feed(bytes.Clone(text), time.Time{}), whole.End(time.Time{})...)
		var got []Point
		for len(text) > 0 {
			n := min(rapid.IntRange(1, 30).Draw(t, "cut"), len(text))
			if len(text) > 5000 {
				n = min(rapid.IntRange(1, 5000).Draw(t, "bigger cut"), len(text))
			}
			got = append(got, cut.Feed(bytes.Clone(text[:n]), time.Time{})...)
			text = text[n:]
		}
		got = append(got, cut.End(time.Time{})...)
		if told(got) != told(want) || whole.Progress() != cut.Progress() {
			t.Fatalf("in pieces: %s\nas a whole: %s", told(got), told(want))
		}
	})
}

func TestALineWithoutEndTakesBoundedMemory(t *testing.T) {
	r := NewReader(nil)
	chunk := bytes.Repeat([]byte("step 1 loss=1.5 ab:3 "), 75_000) // 1 MB
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if points := r.Feed(chunk, time.Time{}); points != nil {
			t.Fatal("points from a line that has not ended")
		}
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("100 MB of one line made it allocate %d bytes", grown)
	}
	if got := told(r.Feed([]byte("\nstep 2 loss=3\n"), time.Time{})); got != "loss=1.5@1 loss=3@2" {
		t.Errorf("then it read %s", got)
	}
}

func TestAFloodOfNamesIsForgotten(t *testing.T) {
	r := NewReader(nil)
	n := 0
	for i := range 20_000 {
		n += len(r.Feed(fmt.Appendf(nil, "step %d name%d_x: 1\n", i, i), time.Time{}))
	}
	if n > 0 || len(r.series) > mostSeries || r.held > mostHeld || len(r.scanner.names) > mostTerms {
		t.Errorf("%d points, %d series, %d held, %d names", n, len(r.series), r.held, len(r.scanner.names))
	}
	if got := told(r.Feed([]byte("step 9 loss: 2 odd: 1.5\nstep 10 loss: 1 odd: 2.5\n"), time.Time{})); got != "loss=2@9 loss=1@10 odd=1.5@9 odd=2.5@10" {
		t.Errorf("after the flood it read %s", got)
	}
}

func TestPointsKeepTheirValueInJSON(t *testing.T) {
	step, epoch := int64(3), 1.5
	for value, want := range map[float64]string{0.25: `0.25`, math.Inf(1): `"inf"`, math.Inf(-1): `"-inf"`, 1e21: `1e+21`} {
		p := Point{Name: "loss", Step: &step, Epoch: &epoch, Ordinal: 7, Value: value}
		b, err := json.Marshal(p)
		if full := `{"name":"loss","step":3,"epoch":1.5,"ordinal":7,"value":` + want + `}`; err != nil || string(b) != full {
			t.Fatalf("got %s (%v), want %s", b, err, full)
		}
		var back Point
		if err := json.Unmarshal(b, &back); err != nil || told([]Point{back}) != told([]Point{p}) || back.Ordinal != 7 {
			t.Errorf("%s came back as %+v (%v)", b, back, err)
		}
	}
	b, err := json.Marshal(Point{Name: "x", Value: math.NaN()})
	if want := `{"name":"x","step":null,"ordinal":0,"value":"nan"}`; err != nil || string(b) != want {
		t.Errorf("got %s (%v), want %s", b, err, want)
	}
	var p Point
	if err := json.Unmarshal(b, &p); err != nil || !math.IsNaN(p.Value) {
		t.Errorf("nan came back as %+v (%v)", p, err)
	}
	if err := json.Unmarshal([]byte(`{"name":"x","value":"many"}`), &p); err == nil {
		t.Error("a value that is no number was read")
	}
}

func FuzzReader(f *testing.F) {
	seeds, err := filepath.Glob("testdata/logs/*.log")
	if err != nil || len(seeds) == 0 {
		f.Fatalf("no seeds in testdata/logs (%v)", err)
	}
	for _, seed := range seeds {
		b, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, uint(7))
	}
	for _, p := range scraps {
		f.Add([]byte(p+p), uint(1))
	}
	for _, text := range printed(f) {
		f.Add([]byte(text), uint(7))
	}
	f.Fuzz(func(t *testing.T, text []byte, cut uint) {
		whole, parts := NewReader(nil), NewReader(nil)
		want := append(whole.Feed(text, time.Time{}), whole.End(time.Time{})...)
		at := int(cut % uint(len(text)+1))
		got := append(parts.Feed(text[:at], time.Time{}), parts.Feed(text[at:], time.Time{})...)
		got = append(got, parts.End(time.Time{})...)
		if told(got) != told(want) {
			t.Fatalf("cut at %d: %s\nwhole: %s", at, told(got), told(want))
		}
		for _, p := range want {
			if p.Name == "" || len(p.Name) > 2*longestName || strings.ContainsFunc(p.Name, func(r rune) bool { return r <= ' ' || r == utf8.RuneError || !unicode.IsGraphic(r) }) {
				t.Fatalf("a series named %q", p.Name)
			}
			if p.Step != nil && *p.Step < 0 || p.Epoch != nil && !(*p.Epoch >= 0) {
				t.Fatalf("a point at %s", told([]Point{p}))
			}
		}
	})
}

func TestTheShareOfARunThatIsDone(t *testing.T) {
	for _, c := range []struct {
		p     Progress
		share float64
		known bool
	}{
		{Progress{}, 0, false},
		{Progress{Step: 50}, 0, false},
		{Progress{Step: 0, Steps: 100}, 0, true},
		{Progress{Step: 25, Steps: 100, Epoch: 9, Epochs: 10}, 0.25, true},
		{Progress{Epoch: 1, Epochs: 2}, 0.5, true},
		{Progress{Step: 200, Steps: 100}, 2, false},
		{Progress{Epoch: math.NaN(), Epochs: 2}, math.NaN(), false},
	} {
		if share, known := c.p.Share(); known != c.known || known && share != c.share {
			t.Errorf("%+v: %v, %v; want %v, %v", c.p, share, known, c.share, c.known)
		}
	}
}

func TestARunBeganWhereItFirstSaidHowFarItWas(t *testing.T) {
	for name, c := range map[string]struct {
		log  string
		want Progress
	}{
		"from a checkpoint": {"resuming\nstep 500/1000 loss 2.0\nstep 510/1000 loss 2.0\n", Progress{Step: 500, Steps: 1000}},
		"in a bar":          {" 10%|█         | 10/100 [00:01<00:09, 10.00it/s, loss=2.1]\n 20%|██        | 20/100 [00:02<00:08, 10.00it/s, loss=2.0]\n", Progress{Step: 10, Steps: 100}},
		"it never said":     {"step 500 loss 2.0\nstep 510 loss 2.0\n", Progress{}},
	} {
		for _, cut := range []int{len(c.log), 7} {
			r := NewReader(nil)
			for rest := []byte(c.log); len(rest) > 0; {
				n := min(cut, len(rest))
				r.Feed(rest[:n], time.Time{})
				rest = rest[n:]
			}
			if got := r.Began(); got != c.want {
				t.Errorf("%s, in cuts of %d: %+v, want %+v", name, cut, got, c.want)
			}
		}
	}
}
