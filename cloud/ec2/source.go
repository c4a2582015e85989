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

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/door"
)

// sourceEnv names the address that ssh will come from, where it can't be found
// out; or several, with commas.
const sourceEnv = "DLWB_SOURCE_ADDRESS"

// whatIsMyAddress is AWS's own answer to that question.
const whatIsMyAddress = "https://checkip.amazonaws.com"

// sources are from where the nodes may be reached by ssh: what the machine's
// owner has set, what the profile says, or the caller's address as AWS sees it;
// never everybody's.
func (p *Provider) sources(ctx context.Context, spec cloud.Spec) ([]netip.Prefix, error) {
	if given, err := givenSources(spec); len(given) > 0 || err != nil {
		return given, err
	}
	api, err := p.api(ctx)
	if err != nil {
		return nil, err
	}
	if onThisMachine(api.Endpoint()) {
		return door.Parse([]string{"127.0.0.1"})
	}
	said, err := askAddress(ctx)
	if err == nil {
		var from []netip.Prefix
		if from, err = door.Parse([]string{said}); err == nil {
			return from, nil
		}
	}
	return nil, fmt.Errorf("find out this machine's public address, from which alone the nodes may be reached: %w; "+
		"set it by hand: export %s=203.0.113.7", err, sourceEnv)
}

// givenSources are those that somebody has set; none: nobody has.
func givenSources(spec cloud.Spec) ([]netip.Prefix, error) {
	if s := os.Getenv(sourceEnv); s != "" {
		return door.Parse(strings.Split(s, ","))
	}
	return door.Parse(own(spec).SSHFrom)
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

// onThisMachine reports whether an endpoint is an emulator here.
func onThisMachine(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
