package door

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

// SourceEnv names the address that ssh will come from, where it can't be found
// out; or several, with commas.
const SourceEnv = "DLWB_SOURCE_ADDRESS"

// whatIsMyAddress is AWS's own answer to that question.
const whatIsMyAddress = "https://checkip.amazonaws.com"

// Given are the sources that somebody has set: the machine's owner, or else a
// profile; none: nobody has.
func Given(profile []string) ([]netip.Prefix, error) {
	if s := os.Getenv(SourceEnv); s != "" {
		return Parse(strings.Split(s, ","))
	}
	return Parse(profile)
}

// Mine is the caller's address as AWS sees it; never everybody's. An endpoint on
// this machine sees the loopback. web goes by the proxies and certificates of all
// other calls.
func Mine(ctx context.Context, web *http.Client, endpoint string) ([]netip.Prefix, error) {
	if Local(endpoint) {
		return Parse([]string{"127.0.0.1"})
	}
	said, err := ask(ctx, web, whatIsMyAddress)
	if err == nil {
		var from []netip.Prefix
		if from, err = Parse([]string{said}); err == nil {
			return from, nil
		}
	}
	return nil, fmt.Errorf("find out this machine's public address, from which alone the nodes may be reached: %w; "+
		"set it by hand: export %s=203.0.113.7", err, SourceEnv)
}

// farBySix is an address of Amazon's, to which nothing is sent.
const farBySix = "[2600:1f00::1]:443"

// MineBySix is the caller's IPv6 address, by which AWS sees it: the one from which
// this machine would go to the internet.
func MineBySix(ctx context.Context, endpoint string) ([]netip.Prefix, error) {
	if Local(endpoint) {
		return Parse([]string{"::1"})
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp6", farBySix) // says from where, and sends nothing
	if err != nil {
		return nil, fmt.Errorf("this machine has no way to the internet by IPv6, and so none to machines that are reached by it: %w", err)
	}
	defer conn.Close()
	at := conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
	if !at.IsGlobalUnicast() || at.IsPrivate() {
		return nil, fmt.Errorf("this machine would go out by the IPv6 address %s, which AWS does not see: name the one that it sees in machines.ssh_from, or export %s", at, SourceEnv)
	}
	return Parse([]string{at.WithZone("").String()})
}

// BySix are the IPv6 networks of a list, or the others.
func BySix(all []netip.Prefix, six bool) (some []netip.Prefix) {
	for _, n := range all {
		if n.Addr().Is6() == six {
			some = append(some, n)
		}
	}
	return some
}

func ask(ctx context.Context, web *http.Client, at string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return "", err
	}
	resp, err := web.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s answers %s", at, resp.Status)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 100))
	return strings.TrimSpace(string(b)), err
}

// Local reports whether an endpoint is an emulator here.
func Local(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
