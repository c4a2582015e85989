//go:build unix

package remote

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// parse reads a list that comes in small pieces.
func (p *puller) parse(text string) error {
	l := &listing{p: p, missing: make([]bool, len(p.paths)), most: 1000}
	for len(text) > 0 {
		piece := text[:min(7, len(text))]
		if _, err := l.Write([]byte(piece)); err != nil {
			return err
		}
		text = text[len(piece):]
	}
	return l.end()
}

// teller is a node that answers whatever it is asked with the same.
type teller struct {
	syncNode
	tell func(out io.Writer) error
}

func (n teller) Name() string { return "node0" }

func (n teller) Exec(ctx context.Context, c Cmd) (Result, error) {
	for ctx.Err() == nil {
		if err := n.tell(c.Stdout); err != nil {
			break
		}
	}
	return Result{}, context.Cause(ctx)
}

func TestPullEndsAListThatDoesNotEnd(t *testing.T) {
	for name, c := range map[string]struct{ head, more, says string }{
		"things":  {"now 1 tar\nlist\n", "1 1 81a4 .//out/%[1]d\n", "stopped before out/4000: its list has more than 4,000 things"},
		"a name":  {"now 1 tar\nlist\n1 1 81a4 .//out/", "name%[1]d", "a line of more than 8192 bytes"},
		"missing": {"now 1 tar\n", "missing 00001%[2]s\n", "its list has more than"},
		"text":    {"", "x%[1]d", "a line of more than 8192 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			n, told := 0, 0
			_, err := pullFrom(t.Context(), teller{tell: func(out io.Writer) error {
				var page bytes.Buffer
				if told == 0 {
					page.WriteString(c.head)
				}
				for range 1000 {
					fmt.Fprintf(&page, c.more, n, "")
					n++
				}
				told += page.Len()
				_, err := out.Write(page.Bytes())
				return err
			}}, codeDir, []string{"out"}, t.TempDir(), PullLimits{MaxFiles: 1000})
			if err == nil || !strings.Contains(err.Error(), c.says) || told > 4<<20 {
				t.Errorf("after %d bytes: %v", told, err)
			}
		})
	}
}

func TestPullTakesAListThatNamesAThingTwice(t *testing.T) {
	p := &puller{paths: []string{"a", "a/b"}, res: &PullResult{}}
	err := p.parse("now 5 tar\nmissing 2\nmissing 2\nlist\n1 1 41ed .//a\n2 1 81a4 .//a/b\n3 1 81a4 .//a/b\n9 1 11a4 .//a/p\n9 1 11a4 .//a/p\n")
	if err != nil || len(p.found) != 2 || p.found[1].size != 2 || len(p.res.Missing) != 1 || len(p.res.Skipped) != 1 || !p.hasTar {
		t.Errorf("%v: %+v, %+v", err, p.found, p.res)
	}
	if err := p.parse("motd\n"); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("what is no list was read: %v", err)
	}
}
