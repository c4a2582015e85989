package cli

import (
	"context"
	"errors"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cli/keeping"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/workbench"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/reading"
)

func (a *app) forwardCommand() *cobra.Command {
	var f keeping.Forwarding
	c := &cobra.Command{
		Use: "forward CLUSTER [[nodeN:]jupyter|tensorboard|PORT[/http]]...", Short: "tunnels to nodes, open until Ctrl-C or kept in the background",
		Long: `Opens tunnels from ports of this machine to node 0, or with node1: before what is
meant to that node; with none named, all that the profile lists under forward.
jupyter and tensorboard are started there when they do not run yet.

The address of an HTTP server (jupyter, tensorboard, PORT/http, or any port with
--http) carries a ticket that lets one browser in, once, within 15 minutes; other
web pages and other users of this machine are refused. Its host is a name of its
own below localhost, which browsers know to be this machine. Any other port is a
raw TCP tunnel: every program and web page of yours reaches it, and on Linux no
other user's.

Tunnels outlive a lost connection. The local port is the one that the forward
had before, else the usual one, else the next that is free.

--reverse PORT[:LOCAL] leads from a port of node 0, which listens there on
127.0.0.1 only, to a port of this machine.

With --keep dlwb's keeper holds them, as it does those that the screen opens: they go
on until --close, by name or port, or with neither all of them, or until the cluster
is taken down. A machine that is not reached by ssh, or with a key that only you can
unlock, has tunnels that end with dlwb.`,
		Args: cobra.MinimumNArgs(1),
	}
	c.Flags().IntVar(&f.Port, "port", 0, "local port (default: the one it had, the usual one, or the next free one)")
	c.Flags().BoolVar(&f.HTTP, "http", false, "the ports are HTTP servers: guard them by a token, Host and Origin")
	c.Flags().StringArrayVar(&f.Reverse, "reverse", nil, "lead from this port of node 0 to this machine; may be given again")
	c.Flags().BoolVar(&f.Keep, "keep", false, "leave them open in the background")
	c.Flags().BoolVar(&f.Close, "close", false, "close those that are open in the background")
	c.RunE = a.with(func(ctx context.Context, w *workbench.Workbench, args []string) error {
		reverse, err := f.Check(args[1:])
		switch {
		case err != nil:
			return usageError{err}
		case f.Close:
			return a.closeForwards(w, args[0], args[1:])
		}
		return a.forward(ctx, w, args[0], args[1:], reverse, f)
	})
	return c
}

func (a *app) forward(ctx context.Context, w *workbench.Workbench, word string, what []string, reverse [][2]int, f keeping.Forwarding) error {
	cluster, err := w.FindCluster(word)
	if err != nil {
		return err
	}
	if len(what) == 0 && len(reverse) == 0 {
		if what, err = w.Tunnels().ListedForwards(cluster.Name); err != nil {
			return err
		}
	}
	if f.HTTP {
		for i, text := range what {
			if _, name := profiles.SplitForward(text); isNumber(name) {
				what[i] = text + "/http"
			}
		}
	}
	if f.Keep {
		w.Tunnels().Keep()
	}
	news := w.Subscribe(cluster.Name).FromNow().WithoutSamples()
	defer news.Close()
	opened, failed := a.openAll(ctx, w, cluster.Name, what, reverse, f.Port)
	if len(opened) == 0 {
		return failed
	}
	for _, o := range opened {
		if err := a.printer(w).one(event.Event{Time: timeNow(), Cluster: cluster.Name, Body: o}); err != nil {
			return err
		}
	}
	a.reportEach(failed)
	if slices.ContainsFunc(opened, func(o event.ForwardOpened) bool { return !o.Kept }) {
		a.hint("open until Ctrl-C")
		a.holdOpen(ctx, w, news, opened)
	} else {
		a.hint("open in the background; dlwb forward %s --close closes", cluster.Name)
	}
	if failed != nil {
		return runError{1}
	}
	return nil
}

func isNumber(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}

// closeForwards closes tunnels that go on in the background.
func (a *app) closeForwards(w *workbench.Workbench, word string, what []string) error {
	cluster, err := w.FindCluster(word)
	if err != nil {
		return err
	}
	closed, err := w.Tunnels().CloseNamed(cluster.Name, what)
	for _, o := range closed {
		_ = a.printer(w).one(event.Event{Time: timeNow(), Cluster: cluster.Name, Body: o.Closed("closed")})
	}
	return err
}

// openAll opens everything that was asked for, and returns what opened with the
// errors of the rest.
func (a *app) openAll(ctx context.Context, w *workbench.Workbench, cluster string, what []string, reverse [][2]int, port int) ([]event.ForwardOpened, error) {
	var opened []event.ForwardOpened
	var failed error
	switch {
	case port != 0:
		o, err := w.Tunnels().ForwardAt(ctx, cluster, what[0], port)
		if failed = err; err == nil {
			opened = append(opened, o)
		}
	case len(what) > 0:
		opened, failed = w.Tunnels().ForwardAll(ctx, cluster, what)
	}
	for _, r := range reverse {
		o, err := w.Tunnels().Reverse(ctx, cluster, r[0], r[1])
		if failed = errors.Join(failed, err); err == nil {
			opened = append(opened, o)
		}
	}
	return opened, failed
}

// reportEach says each of several errors by itself.
func (a *app) reportEach(err error) {
	var several interface{ Unwrap() []error }
	if errors.As(err, &several) {
		for _, e := range several.Unwrap() {
			a.reportEach(e)
		}
		return
	}
	a.report(err)
}

// holdOpen waits until the user has enough, or the cluster is gone and the
// tunnels lead nowhere. How the tunnels stand is told meanwhile.
func (a *app) holdOpen(ctx context.Context, w *workbench.Workbench, news *reading.Subscription, opened []event.ForwardOpened) {
	for ctx.Err() == nil {
		for _, e := range news.Next(ctx) {
			switch b := e.Body.(type) {
			case event.ForwardChanged:
				for _, o := range opened {
					if o.Kind == b.Kind && o.LocalPort == b.LocalPort && o.RemotePort == b.RemotePort {
						_ = a.printer(w).one(e)
					}
				}
			case event.ReceiptMade:
				if b.Proven {
					a.hint("cluster %s is gone, and the tunnel with it", e.Cluster)
					return
				}
			}
		}
	}
}
