package tunnel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/workbench/event"
)

const (
	// answerLimit is how long a service may take to answer; Jupyter and
	// TensorBoard import a lot before they listen.
	answerLimit = 60 * time.Second
	// askEvery is the pause between two looks at whether it answers.
	askEvery = 200 * time.Millisecond
)

// serviceEnded is that a service is gone that was waited for.
type serviceEnded struct{ error }

// Unwrap gives what is told of it.
func (e serviceEnded) Unwrap() error { return e.error }

// awaitService waits until the first page of a service is there. One that does
// not come to that is ended and forgotten, so that the next try begins afresh.
func awaitService(ctx context.Context, c Cluster, s service) error {
	n := c.Node
	limited, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	// Past the tunnel, which is there for browsers.
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: n.DialContext}}
	var last error
	for look := 0; ; look++ {
		err := ask(limited, client, s)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err() // it may well come up: nobody waits for it any more
		case limited.Err() != nil:
			return serviceSilent(ctx, c, s, fmt.Sprintf("it did not answer within %s: %v", answerLimit, last))
		}
		last = err
		if look%5 == 4 {
			state, err := n.RunState(limited, s.ID)
			if err == nil && state.State != remote.RunRunning {
				return serviceEnded{serviceSilent(ctx, c, s, "it ended before it answered")}
			}
		}
		select {
		case <-time.After(askEvery):
		case <-limited.Done():
		}
	}
}

// ask reports whether a page is there.
func ask(ctx context.Context, client *http.Client, s service) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d%s", s.Port, s.Path), nil)
	if err != nil {
		return err
	}
	if token := s.login(); token != "" {
		req.Header.Set("Authorization", "token "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		// The message of the client repeats the address.
		for inner := err; inner != nil; inner = errors.Unwrap(inner) {
			err = inner
		}
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", resp.Status)
	}
	return nil
}

// serviceSilent says why a service does not answer, with the last lines of its
// log.
func serviceSilent(ctx context.Context, c Cluster, s service, why string) error {
	r, _ := c.Node.Exec(ctx, remote.Cmd{Line: fmt.Sprintf(`tail -n 12 "$HOME/.dlwb/runs/%s/%s.log" 2>/dev/null`, s.ID, s.What)})
	_ = forgetService(ctx, c, s.What, s.ID, why)
	said := string(r.Stdout)
	if s.Token != "" {
		said = strings.ReplaceAll(said, s.Token, "…")
	}
	return &event.Fault{What: "reach " + s.What, Node: c.Number, Why: why, LastLines: event.LastLines(said, 12)}
}
