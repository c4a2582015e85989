//go:build unix

package remote

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// spoilingNode changes what one command of it says.
type spoilingNode struct {
	*shellNode
	when  string // what the command's line contains
	times int
	most  int64 // the bytes that come of its output
	err   error
	asked []string
}

func (n *spoilingNode) Exec(ctx context.Context, c Cmd) (Result, error) {
	n.asked = append(n.asked, c.Line)
	if n.times == 0 || !strings.Contains(c.Line, n.when) || c.Stdout == nil {
		return n.shellNode.Exec(ctx, c)
	}
	n.times--
	var all strings.Builder
	to := c.Stdout
	c.Stdout = &all
	if _, err := n.shellNode.Exec(ctx, c); err != nil {
		return Result{}, err
	}
	text := all.String()
	if n.most > 0 {
		text = text[:n.most]
	} else {
		text = strings.Replace(text, "weights", "wEights", 1)
	}
	_, err := to.Write([]byte(text))
	if n.err != nil {
		err = n.err
	}
	return Result{}, err
}

func TestALargeDownloadGoesOnWhereItWasAndIsVerified(t *testing.T) {
	n := &spoilingNode{shellNode: newShellNode(t), when: "tail -c", times: 1, most: 10e6, err: &LostError{"node0", "run", context.Canceled}}
	text := strings.Repeat("weights and more weights, 32 by\n", 600_000)
	writeFiles(t, n.code(), map[string]string{"out/model.pt": text, "out/log": "x"})
	makeOld(t, n.code())
	dest := t.TempDir()
	if _, err := pullFrom(t.Context(), n, codeDir, []string{"out"}, dest, PullLimits{}); err == nil {
		t.Fatal("the connection was to be lost")
	}
	n.asked = nil
	n.err, n.most = nil, 0
	n.times = 1 // and what comes now is not what is there
	res, err := pullFrom(t.Context(), n, codeDir, []string{"out"}, dest, PullLimits{})
	check(t, err)
	if got, _ := os.ReadFile(filepath.Join(dest, "out/model.pt")); string(got) != text {
		t.Error("the file is not as it is on the node")
	}
	if asked := strings.Join(n.asked, "\n"); !strings.Contains(asked, "10000001") {
		t.Errorf("it did not go on behind the 10 MB that had come:\n%.2000s", asked)
	}
	if res.Files != 2 || res.Bytes != int64(len(text))+1 {
		t.Errorf("the result is %v", res)
	}
	if left, _ := filepath.Glob(filepath.Join(dest, ".dlwb*")); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

func TestASmallFileThatDidNotComeAsItIsComesAgain(t *testing.T) {
	n := &spoilingNode{shellNode: newShellNode(t), when: "exec tar", times: 1}
	writeFiles(t, n.code(), map[string]string{"out/a": "weights", "out/new\nline": "x"})
	makeOld(t, n.code())
	dest := t.TempDir()
	res, err := pullFrom(t.Context(), n, codeDir, []string{"out"}, dest, PullLimits{})
	check(t, err)
	if got, _ := os.ReadFile(filepath.Join(dest, "out/a")); string(got) != "weights" || res.Files != 2 {
		t.Errorf("here is %q; %v, %q", got, res, res.Skipped)
	}
}
