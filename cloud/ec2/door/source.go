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
