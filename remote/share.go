package remote

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed syncscripts/give.sh
var giveScript string

//go:embed syncscripts/take.sh
var takeScript string

// Place is a directory of a node, below its home.
type Place struct {
	Node *Node
	Dir  string
}

// sharing is a Place as the tests may stand in for it.
type sharing struct {
	node syncNode
	dir  string
}

// Share copies what is in a directory of one node to other nodes, over their
// own network, with the node-to-node key: none of it comes by here. Each takes
// it only when its SHA-256 is the one that the sender tells us, and puts it in
// place whole, where it takes the place of whatever was there. most bounds its
// bytes.
//
// There is an error for each of the nodes; one that has one has got nothing,
// and nothing is left there. A node that can't be reached is left out, as in a
// Sync. One that takes the connection and reads nothing holds up the others:
// until the limit for so many bytes, when all are given up that have not got
// everything.
func Share(ctx context.Context, from Place, to []Place, most int64) []error {
	list := make([]sharing, len(to))
	for i, p := range to {
		list[i] = sharing{p.Node, p.Dir}
	}
	return share(ctx, sharing{from.Node, from.Dir}, list, most)
}

func share(ctx context.Context, from sharing, to []sharing, most int64) []error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	late := func() { stop(errors.New("it has not come in time")) }
	limit := time.AfterFunc(shareLimit(most), late)
	defer limit.Stop()
	began := time.Now()
	nonce := "share-" + randomWord()
	takers := make([]*taker, len(to))
	var names []string
	for i, s := range to {
		takers[i] = s.take(ctx, nonce, most)
		names = append(names, s.node.Name())
	}
	sum, err := from.give(ctx, nonce, names)
	if err != nil {
		err = fmt.Errorf("%s could not send it: %w", from.node.Name(), err)
	}
	grace := time.AfterFunc(max(relayGrace, time.Since(began)), late)
	defer grace.Stop()
	errs := make([]error, len(to))
	var all sync.WaitGroup
	for i, t := range takers {
		all.Go(func() {
			if errs[i] = t.conclude(sum); err != nil {
				errs[i] = err // why the node has got nothing
			}
		})
	}
	all.Wait()
	return errs
}

// shareLimit is how long so many bytes may take: at less than a megabyte a
// second, nodes are hardly nearer to each other than to where the bytes are from.
func shareLimit(most int64) time.Duration {
	return time.Minute + time.Duration(most>>20)*time.Second
}

var sha256Text = regexp.MustCompile(`^[0-9a-f]{64}$`)

// give sends the directory and gives its checksum.
func (s sharing) give(ctx context.Context, nonce string, names []string) (string, error) {
	args := append([]string{"sh", "-c", digestScript + giveScript, "dlwb", s.dir, nonce}, names...)
	res, err := s.node.Exec(ctx, Cmd{Line: Quote(args...), Quiet: hashLimit})
	if err != nil {
		return "", err
	}
	if err := outcomeOf(res); err != nil {
		return "", err
	}
	sum := strings.TrimSpace(string(res.Stdout))
	if !sha256Text.MatchString(sum) {
		return "", errors.New("it made no SHA-256: install openssl, sha256sum or shasum there")
	}
	return sum, nil
}

// outcomeOf is how one of our commands failed, in its own words.
func outcomeOf(res Result) error {
	if res.ExitCode == 0 {
		return nil
	}
	return &ScriptError{ExitCode: res.ExitCode, Said: lastWords(res.Stderr)}
}

// taker is the command that takes what another node sends.
type taker struct {
	told  *io.PipeWriter // closed without a word, it lets all go
	ended chan struct{}
	err   error
}

func (s sharing) take(ctx context.Context, nonce string, most int64) *taker {
	r, w := io.Pipe()
	t := &taker{told: w, ended: make(chan struct{})}
	line := Quote("sh", "-c", digestScript+takeScript, "dlwb", s.dir, nonce, strconv.FormatInt(most, 10))
	go func() {
		defer close(t.ended)
		res, err := s.node.Exec(ctx, Cmd{Line: line, Stdin: r, Quiet: hashLimit})
		if t.err = err; err == nil {
			t.err = outcomeOf(res)
		}
		_ = r.CloseWithError(io.ErrClosedPipe)
	}()
	return t
}

// conclude tells the node what it must have got; nothing when sum is empty.
func (t *taker) conclude(sum string) error {
	if sum != "" {
		_, _ = io.WriteString(t.told, sum+"\n") // the node says why it does not listen
	}
	_ = t.told.Close()
	<-t.ended
	return t.err
}
