package ec2

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"
)

// sourceEnv names the address that ssh will come from, where it can't be found
// out.
const sourceEnv = "DLWB_SOURCE_ADDRESS"

// whatIsMyAddress is AWS's own answer to that question.
const whatIsMyAddress = "https://checkip.amazonaws.com"

// source is the address from which the nodes may be reached by ssh: the
// caller's, as AWS sees it, and never everybody's.
func (p *Provider) source(ctx context.Context) (netip.Prefix, error) {
	if s := os.Getenv(sourceEnv); s != "" {
		return parseSource(s)
	}
	api, err := p.api(ctx)
	if err != nil {
		return netip.Prefix{}, err
	}
	if onThisMachine(api.Endpoint()) {
		return parseSource("127.0.0.1")
	}
	said, err := askAddress(ctx)
	if err == nil {
		var from netip.Prefix
		if from, err = parseSource(said); err == nil {
			return from, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("find out this machine's public address, from which alone the nodes may be reached: %w; "+
		"set it by hand: export %s=203.0.113.7", err, sourceEnv)
}

// askAddress asks AWS which address this machine has out there.
func askAddress(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, whatIsMyAddress, nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", whatIsMyAddress, resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 100))
	return strings.TrimSpace(string(b)), err
}

// parseSource reads an address, or a network that is not everything.
func parseSource(s string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen()), nil
	}
	n, err := netip.ParsePrefix(s)
	if err != nil {
		return n, fmt.Errorf("%q is no address", s)
	}
	if n.Bits() < 8 {
		return n, fmt.Errorf("%s is too much of the internet to open ssh to", s)
	}
	return n.Masked(), nil
}

// onThisMachine reports whether an endpoint is an emulator here.
func onThisMachine(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
