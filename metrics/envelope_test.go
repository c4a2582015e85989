package metrics

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"
)

// training is a log as it was printed, and wrapped what it is in containers.
var training = []string{"\x1b[32mEpoch 1/2\x1b[0m", "\r 50%|█████     | 5/10 [00:01<00:01, 5.00it/s]", "train loss: 0.7, val loss: 0.8", "Epoch 2/2", "train loss: 0.5, val loss: 0.6"}

func TestALogIsReadThroughWhatItWasStoredIn(t *testing.T) {
	plain := drawnOf(t, []byte(strings.Join(training, "\n")+"\n"))
	if plain == "" {
		t.Fatal("the log itself has no series")
	}
	for name, wrap := range map[string]func(i int, line string) string{
		"docker": func(i int, l string) string {
			return fmt.Sprintf(`{"log":%s,"stream":"stdout","time":"2025-03-04T09:00:%02d.1Z"}`, quoted(l+"\n"), i)
		},
		"kubernetes": func(i int, l string) string { return fmt.Sprintf("2025-03-04T09:00:%02d.123456789Z stdout F %s", i, l) },
		"in parts": func(i int, l string) string {
			return fmt.Sprintf("2025-03-04T09:00:%02d.1Z stdout P %s\n2025-03-04T09:00:%02d.2Z stdout F %s", i, l[:len(l)/2], i, l[len(l)/2:])
		},
		"journald": func(i int, l string) string {
			return fmt.Sprintf(`{"__CURSOR":"s=1;i=%d","__REALTIME_TIMESTAMP":"17410788000000%02d","PRIORITY":"6","_PID":"4%d","MESSAGE":%s}`, i, i, i, quoted(l))
		},
		"cloudwatch": func(i int, l string) string {
			return fmt.Sprintf(`{"timestamp": 17410788000%02d, "message": %s, "ingestionTime": 17410788010%02d}`, i, quoted(l), i)
		},
		"loki": func(i int, l string) string {
			return fmt.Sprintf(`{"line":%s,"timestamp":"2025-03-04T09:00:%02dZ","fields":{"app":"train"}}`, quoted(l), i)
		},
		"docker in journald": func(i int, l string) string {
			return fmt.Sprintf(`{"_PID":"4","MESSAGE":%s}`, quoted(fmt.Sprintf(`{"log":%s,"stream":"stdout","time":"2025-03-04T09:00:%02d.1Z"}`, quoted(l+"\n"), i)))
		},
	} {
		var b strings.Builder
		for i, line := range training {
			b.WriteString(wrap(i, line) + "\n")
		}
		if got := drawnOf(t, []byte(b.String())); got != plain {
			t.Errorf("%s: got\n%swant\n%s", name, got, plain)
		}
	}
}

// quoted is a line as a JSON string.
func quoted(line string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\x1b", `\u001b`).Replace(line) + `"`
}

func drawnOf(t *testing.T, b []byte) string {
	t.Helper()
	d, err := Read(bytes.NewReader(b), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return drawn(&d.Set)
}

func TestALogIsReadThroughHowItIsPacked(t *testing.T) {
	text := []byte(strings.Join(training, "\n") + "\n")
	plain := drawnOf(t, text)
	var packed bytes.Buffer
	g := gzip.NewWriter(&packed)
	g.Write(text)
	g.Close()
	z, _ := zstd.NewWriter(nil)
	wide := func(order binary.ByteOrder, mark bool) []byte {
		units := utf16.Encode([]rune(string(text) + "🎉\n"))
		if mark {
			units = append([]uint16{0xfeff}, units...)
		}
		var b []byte
		for _, u := range units {
			b = append(b, 0, 0)
			order.PutUint16(b[len(b)-2:], u)
		}
		return b
	}
	for name, b := range map[string][]byte{
		"gzip": packed.Bytes(), "zstd": z.EncodeAll(text, nil), "gzip in zstd": z.EncodeAll(packed.Bytes(), nil),
		"a mark": append([]byte("\xef\xbb\xbf"), text...), "UTF-16": wide(binary.LittleEndian, true),
		"UTF-16, high byte first": wide(binary.BigEndian, true), "UTF-16 without a mark": wide(binary.LittleEndian, false),
	} {
		if got := drawnOf(t, b); got != plain {
			t.Errorf("%s: got\n%swant\n%s", name, got, plain)
		}
	}
}

// A dictionary that is printed over several lines is one.
func TestADictionaryOverSeveralLinesIsRead(t *testing.T) {
	text := ""
	for e := range 3 {
		text += fmt.Sprintf("{\n  \"epoch\": %d,\n  \"train\": {\n    \"loss\": 0.%d\n  },\n  \"val\": {\n    \"loss\": 0.%d\n  }\n}\n", e, 9-e, 8-e)
	}
	if got, want := drawnOf(t, []byte("starting\n"+text)), "train/loss epoch 0:0.9 1:0.8 2:0.7\nval/loss epoch 0:0.8 1:0.7 2:0.6\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got, want := drawnOf(t, []byte("while (true) {\nstep 1 loss: 0.5\nstep 2 loss: 0.4\n")), "loss step 1:0.5 2:0.4\n"; got != want {
		t.Errorf("behind a brace that opens nothing: got\n%swant\n%s", got, want)
	}
}
