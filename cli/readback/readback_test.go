package readback

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/workbench/export"
)

// points are series of every axis: what is beside a value is not always what places it.
func points() (all []metrics.Point) {
	for i := range 6 {
		step, epoch, both := int64(10*i), float64(i), float64(i/2)
		all = append(all,
			metrics.Point{Name: "loss", Step: &step, Epoch: &epoch, Value: 1 / float64(i+1), X: metrics.AxisStep},
			metrics.Point{Name: "val/loss", Step: &step, Epoch: &epoch, Value: float64(i), X: metrics.AxisEpoch},
			metrics.Point{Name: "lr", Step: &step, Epoch: &both, Value: math.NaN()},
			metrics.Point{Name: "twice", Step: new(int64(i / 2)), Value: math.Inf(-1), X: metrics.AxisStep},
			metrics.Point{Name: "=sum, of", Value: 1e-300},
			metrics.Point{Name: "value", Epoch: &epoch, Value: -2})
	}
	return all
}

func said(s []*metrics.Series) string {
	var b strings.Builder
	for _, one := range s {
		fmt.Fprintln(&b, one.Name, one.Axis(), one.Len(), one.XY(one.Axis()))
	}
	return b.String()
}

func exported(t *testing.T, format string) []byte {
	t.Helper()
	var b bytes.Buffer
	rest := points()
	if err := export.Write(&b, format, func() (export.Row, error) {
		if len(rest) == 0 {
			return export.Row{}, io.EOF
		}
		p := rest[0]
		rest = rest[1:]
		return export.Row{Series: p.Name, Split: metrics.Split(p.Name), Source: "stdout", Step: p.Step, Epoch: p.Epoch, Value: p.Value, Axis: p.X.String()}, nil
	}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(t *testing.T, text []byte) *metrics.Document {
	t.Helper()
	doc, err := Document(bufio.NewReader(bytes.NewReader(text)))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return doc
}

func TestWhatIsExportedReadsBackAsItWas(t *testing.T) {
	var was metrics.Set
	was.Add(points()...)
	for _, format := range []string{"csv", "jsonl"} {
		if got, want := said(read(t, exported(t, format)).Set.Series), said(was.Series); got != want {
			t.Errorf("%s: got\n%swant\n%s", format, got, want)
		}
	}
	// A table of before the column axis tells what it can.
	old := strings.ReplaceAll(string(exported(t, "csv")), ",axis\n", "\n")
	for _, axis := range []string{"step", "epoch", "ordinal"} {
		old = strings.ReplaceAll(old, ",stdout,"+axis, ",stdout")
	}
	if got := read(t, []byte(old)).Set.Series; len(got) != len(was.Series) || got[2].Axis() != metrics.AxisStep || got[2].Len() != 6 {
		t.Errorf("an older table: %s", said(got))
	}
}

func TestTheAnswerOfMetricsReadsBack(t *testing.T) {
	for _, text := range []string{
		`{"format":"files","series":[{"name":"loss","split":"","axis":"step","every":1,"points":[[1,0.5],[2,"nan"]],"sources":[{"source":"a"}]},` +
			`{"name":"loss","split":"","axis":"ordinal","every":1,"points":[[0,"-inf"]]},{"name":"val/loss","axis":"epoch","points":[[0.5,1]]},{"name":"none","axis":"step","points":[]}],"progress":{"epoch":1,"epochs":3,"step":9,"steps":0},"gpus":[]}` + "\n",
		"{\n  \"format\": \"run\",\n  \"series\": [\n    {\n      \"name\": \"loss\", \"axis\": \"step\", \"points\": [[1, 0.5], [2, \"nan\"]]},\n" +
			"    {\"name\": \"loss\", \"axis\": \"ordinal\", \"points\": [[0, \"-inf\"]]}, {\"name\": \"val/loss\", \"axis\": \"epoch\", \"points\": [[0.5, 1]]}], \"progress\": {\"epochs\": 3}}",
	} {
		doc := read(t, []byte(text))
		if doc == nil {
			t.Fatalf("not known: %s", text)
		}
		want := "loss step 2 [[1 0.5] [2 NaN]]\nloss ordinal 1 [[0 -Inf]]\nval/loss epoch 1 [[0.5 1]]\n"
		if got := said(doc.Set.Series); got != want || doc.Progress.Epochs != 3 {
			t.Errorf("got %s%+v", got, doc.Progress)
		}
	}
}

func TestWhatIsOfAnotherOriginIsLeft(t *testing.T) {
	for _, text := range []string{
		"", "step,loss\n1,2\n", "series,split\n", "epoch 1 loss 2\n", `{"series": "a", "value": 1}`, `{"loss": 1, "step": 2}`,
		`{"format":"nvidia-smi","series":[],"progress":{}}`, `{"format":"x"}`,
	} {
		in := bufio.NewReader(strings.NewReader(text))
		doc, err := Document(in)
		rest, _ := io.ReadAll(in)
		if doc != nil || err != nil || string(rest) != text {
			t.Errorf("%q: %v, %v; %q is left", text, doc, err, rest)
		}
	}
}

func TestWhatIsDamagedSaysWhere(t *testing.T) {
	for text, want := range map[string]string{
		columns + "\nloss,,x,,,1,stdout\n":  "line 2: ",
		columns + "\nloss,,1,,,1,stdout\na": "line 3 has 1 cells, not 7",
		`{"series":"a","split":"","step":1,"epoch":null,"time":null,"value":1,"source":"x"}` + "\n{": "line 2: ",
		`{"format":"run","series":[{"name":"`:                                                        "EOF",
	} {
		if _, err := Document(bufio.NewReader(strings.NewReader(text))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
