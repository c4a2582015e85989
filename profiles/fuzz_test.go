package profiles

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dlwb/dlwb/internal/cputime"
)

// slowest is how long a profile of full size may take, whatever is in it. The
// race detector and a busy machine make the tests slower, not the parser.
const slowest = 300 * time.Millisecond

// fill repeats a text up to the size of the largest profile.
func fill(head, text string) []byte {
	return []byte(head + strings.Repeat(text, (MaxSize-len(head))/len(text)))
}

// numbered repeats a text with a number in it up to the size of the largest profile.
func numbered(head, format string) []byte {
	var b strings.Builder
	b.WriteString(head)
	for i := 0; b.Len() < MaxSize-100; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return []byte(b.String())
}

// bombs are texts that are hard on parsers.
func bombs() map[string][]byte {
	nested := strings.Repeat("[", 60) + strings.Repeat("]", 60) + ","
	var stairs strings.Builder
	for i := range 340 {
		stairs.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return map[string][]byte{
		"brackets":           fill("", "["),
		"braces":             fill("", "{"),
		"braces with keys":   fill("", "{a: "),
		"closed brackets":    fill("", "[]"),
		"nests":              fill("metrics: [", nested),
		"brackets by line":   fill("a: ", "[\n"),
		"dashes":             fill("", "- "),
		"questions":          fill("", "? "),
		"colons":             fill("", ": "),
		"questions by line":  fill("", "?\n"),
		"stairs":             []byte(stairs.String()),
		"comments":           fill("", "#\n"),
		"comments behind":    fill("a: ", "x #\n"),
		"one comment":        fill("#", "x"),
		"keys":               numbered("", "k%d: 1\n"),
		"the same key":       fill("", "name: x\n"),
		"unknown keys":       numbered("run:\n", "  comand%d: x\n"),
		"metrics":            numbered("metrics:\n", "  m%d: '(a{999})'\n"),
		"large metrics":      numbered("metrics:\n", "  m%d: '(?:a{30}){30}(?:b{30}){30}(x)'\n"),
		"one large metric":   fill("metrics: {a: '", "(x{99})"),
		"classes":            numbered("metrics:\n", "  m%d: '([\\pL\\PN]{900})'\n"),
		"variables":          numbered("run:\n  env:\n", "    V%d: ${env:NOT}\n"),
		"references":         fill("run: {env: {A: \"", "${env:DLWB_TEST_USER}"),
		"open references":    fill("run: {env: {A: \"", "${env:"),
		"list items":         numbered("results:\n  paths:\n", "  - o%d\n"),
		"equal list items":   fill("forward: [", "jupyter, "),
		"anchors":            numbered("", "a%d: &a%[1]d x\n"),
		"aliases":            fill("a: &a [x]\nb: [", "*a, "),
		"laughs":             []byte("a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\nd: [*c,*c]\n"),
		"tags":               fill("", "!t "),
		"documents":          fill("", "---\n"),
		"quotes":             fill("", `"`),
		"open quotes":        fill("a: ", "\"x\n"),
		"escapes":            fill(`a: "`, `\x41`),
		"block scalar":       fill("a: |\n", " [[[\n"),
		"block scalars":      fill("", "a: |\n x\n"),
		"spaces":             fill("", " "),
		"newlines":           fill("", "\n"),
		"tabs":               fill("a:", "\t"),
		"one word":           fill("", "a"),
		"words":              fill("", "a "),
		"percent":            fill("", "%YAML 1.1\n"),
		"invalid":            fill("", "\xff"),
		"control characters": fill("", "\x1b\n"),
		"BOMs":               fill("", "\uFEFF"),
		"almost secrets":     fill("name: ", "hf_AKIAsk-ghp_"),
		"secrets":            numbered("", "k%d: AKIA0123456789ABCDEF\n"),
		"names with dots":    fill("", "machines."),
		"a long command":     fill("run: {command: 'train.py", " x"),
	}
}

func TestNoProfileTakesLong(t *testing.T) {
	for name, text := range bombs() {
		t.Run(name, func(t *testing.T) {
			if len(text) > MaxSize {
				t.Fatalf("%d bytes", len(text))
			}
			best := time.Hour // of three
			for range 3 {
				start := cputime.Worked()
				checkParse(t, text)
				best = min(best, cputime.Worked()-start)
				if best < slowest*raceFactor {
					break
				}
			}
			if limit := slowest * raceFactor; best > limit {
				t.Errorf("took %s, the most is %s", best, limit)
			}
		})
	}
}

// checkParse checks what holds for every text: a profile or Errors, each with
// a place in the file, in order, and fit for a terminal.
func checkParse(t *testing.T, text []byte) {
	t.Helper()
	p, err := parse("x.yaml", text, shell)
	if err == nil {
		if again, err := parse("x.yaml", Write(p), shell); err != nil || !Equal(p, again) {
			t.Fatalf("%q is written as %q, which is not the same: %v", text, Write(p), err)
		}
		return
	}
	var faults Errors
	if !errors.As(err, &faults) || len(faults) == 0 || len(faults) > maxErrors+1 || p != nil {
		t.Fatalf("got %d faults, %v", len(faults), err)
	}
	for _, e := range faults {
		if e.Line < 1 || e.Column < 1 || e.Why == "" {
			t.Fatalf("a fault without a place or a reason: %#v", e)
		}
		if d := e.Detail(); !utf8.ValidString(d) || strings.ContainsAny(d, "\x00\x1b\x7f\u202e\r\t") || strings.Contains(e.Error(), "\n") || len(d) > 4000 {
			t.Fatalf("not fit to be shown: %q", d)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, dir := range []string{"good", "broken"} {
		for _, text := range files(f, dir) {
			f.Add(text)
		}
	}
	for _, e := range Examples {
		f.Add([]byte(e.Text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		start := cputime.Worked()
		checkParse(t, text)
		if took := cputime.Worked() - start; took > 20*slowest { // the exact limit is for a quiet machine: TestNoProfileTakesLong
			t.Errorf("took %s", took)
		}
	})
}
