//go:build unix

package keeper

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/dlwb/dlwb/remote"
)

// hold has the keeper hold a tunnel, and listens to how it stands.
func (c *Client) hold(ctx context.Context, t remote.Target, w remote.TunnelWish) (*remote.KeptTunnel, error) {
	talk, err := c.askToHold(ctx, t, w)
	if err != nil {
		slog.Debug("no keeper", "error", err)
		return nil, nil
	}
	stop := context.AfterFunc(ctx, func() { _ = talk.Close() })
	_ = talk.SetReadDeadline(time.Now().Add(lendLimit))
	var a answer
	err = receive(talk.in, &a)
	_ = talk.SetReadDeadline(time.Time{})
	if !stop() {
		return nil, context.Cause(ctx)
	}
	if err == nil && a.Tunnel != nil {
		return c.listenTo(talk, *a.Tunnel), nil
	}
	_ = talk.Close()
	var taken *remote.PortTakenError
	if err == nil && a.Failure != nil && errors.As(a.Failure.error(), &taken) {
		return nil, taken
	}
	return nil, nil // the command finds out by itself what is wrong
}

// askToHold asks the keeper of this build, which is started unless a tunnel is only
// to be found.
func (c *Client) askToHold(ctx context.Context, t remote.Target, w remote.TunnelWish) (*talk, error) {
	q := question{Build: c.build, Op: opHold, Tunnel: &w}
	if w.Find {
		return ask(ctx, socketPath(c.state, c.build), q)
	}
	c.endOlder(w)
	q.Targets = []remote.Target{resolved(t)}
	return c.reach(ctx, q)
}

// endOlder closes the tunnel that a keeper of another build holds: its port is
// wanted.
func (c *Client) endOlder(w remote.TunnelWish) {
	_ = c.each(question{Op: opStatus}, func(t *talk, a answer) {
		if t.greeting.Build == c.build || a.Status == nil {
			return
		}
		for _, h := range a.Status.Tunnels {
			if h.Cluster == w.Cluster && h.Name == w.Name && h.Reverse == w.Reverse {
				c.end(h)
			}
		}
	})
}

// listenTo takes the news of a tunnel until its end, or its keeper's.
func (c *Client) listenTo(t *talk, is remote.TunnelHeld) *remote.KeptTunnel {
	kept := remote.NewKeptTunnel(is, remote.TunnelHolder{
		Ticket: func() string { return c.ticket(is) },
		End:    func() error { c.end(is); return nil },
		Leave:  func() { _ = t.Close() },
	})
	go func() {
		defer t.Close()
		for {
			var news tunnelNews
			if receive(t.in, &news) != nil {
				kept.Ended("")
				return
			}
			kept.Tell(news.Stands)
			if news.Ended != "" {
				kept.Ended(news.Ended)
				return
			}
		}
	}()
	return kept
}

// ticket asks for a ticket of a tunnel.
func (c *Client) ticket(of remote.TunnelHeld) (ticket string) {
	_ = c.each(question{Op: opTicket, Like: &of}, func(_ *talk, a answer) {
		if a.Ticket != "" {
			ticket = a.Ticket
		}
	})
	return ticket
}

// end closes tunnels.
func (c *Client) end(like remote.TunnelHeld) {
	_ = c.each(question{Op: opEnd, Like: &like}, func(*talk, answer) {})
}
