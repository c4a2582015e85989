package awsapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// proxyRefused is that a proxy did not open the way to AWS, before anything was sent.
type proxyRefused struct {
	proxy, host string
	status      int
}

func (e *proxyRefused) Error() string {
	return fmt.Sprintf("the proxy %s did not open the way to %s: HTTP %d %s", e.proxy, e.host, e.status, http.StatusText(e.status))
}

func (e *proxyRefused) advice() string {
	if e.status == http.StatusProxyAuthRequired {
		return "it wants a user and a password: export HTTPS_PROXY=http://USER:PASSWORD@" + e.proxy
	}
	return "see HTTPS_PROXY and NO_PROXY, or ask whoever runs the proxy to allow " + e.host
}

// proxyRefuses reports whether it makes no sense to ask a proxy again.
func proxyRefuses(err error) bool {
	var refused *proxyRefused
	return errors.As(err, &refused) && refused.status < http.StatusInternalServerError
}

// throughProxy keeps what a proxy said to a connection, of which net/http keeps the
// words alone.
func throughProxy(t *http.Transport) {
	t.OnProxyConnectResponse = func(_ context.Context, proxy *url.URL, ask *http.Request, reply *http.Response) error {
		if reply.StatusCode == http.StatusOK {
			return nil
		}
		return &proxyRefused{proxy: proxy.Host, host: ask.Host, status: reply.StatusCode}
	}
}
