// Package awsapi is dlwb's one door to AWS: credentials, regions, retries and
// the words for what went wrong. It makes no resource and remembers nothing
// but who the caller is.
package awsapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// API gives the clients of each region. Its methods may be called from several
// goroutines.
type API struct {
	cfg aws.Config
	web *http.Client // for what is no call of an API

	mu       sync.Mutex
	near     string // see Near
	ec2      map[string]*ec2.Client
	identity *Identity
}

// Load reads the user's AWS configuration as every AWS tool does: environment,
// shared files, SSO, and AWS_ENDPOINT_URL for another endpoint. It sends
// nothing.
func Load(ctx context.Context) (*API, error) {
	var roles roleClient
	var here machineRole
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(callLimit).WithTransportOptions(throughProxy)),
		config.WithLogger(logging.Nop{}), // the screen is not the SDK's
		config.WithRetryer(func() aws.Retryer { return readRetryer() }),
		config.WithAssumeRoleCredentialOptions(func(o *stscreds.AssumeRoleOptions) { roles.AssumeRoleAPIClient, o.Client = o.Client, &roles }),
		config.WithEC2RoleCredentialOptions(func(o *ec2rolecreds.Options) { o.Client = &here }),
		config.WithWebIdentityRoleCredentialOptions(func(o *stscreds.WebIdentityRoleOptions) {
			roles.AssumeRoleWithWebIdentityAPIClient, o.Client = o.Client, &roles
		}),
	)
	if err != nil {
		return nil, &configError{err}
	}
	here.Client = imds.NewFromConfig(cfg, func(o *imds.Options) { o.Retryer = retry.AddWithMaxAttempts(retry.NewStandard(), 2) })
	roles.endpoint = sts.NewFromConfig(cfg).Options().BaseEndpoint
	web := webClient(cfg.HTTPClient)
	cfg.APIOptions = append(cfg.APIOptions, distrust)
	cfg.HTTPClient = &client{cfg.HTTPClient} // only now: AWS_CA_BUNDLE has gone into it
	return &API{cfg: cfg, web: web, ec2: map[string]*ec2.Client{}}, nil
}

// webClient is a client for websockets by the proxies and certificates of all
// other calls. A websocket begins as a request of HTTP/1.1.
func webClient(of aws.HTTPClient) *http.Client {
	t, _ := http.DefaultTransport.(*http.Transport)
	if b, is := of.(*awshttp.BuildableClient); is {
		t = b.GetTransport()
	}
	t = t.Clone()
	t.ForceAttemptHTTP2, t.TLSNextProto = false, map[string]func(string, *tls.Conn) http.RoundTripper{}
	if t.TLSClientConfig != nil {
		t.TLSClientConfig.NextProtos = nil
	}
	return &http.Client{Transport: t}
}

// Web is a client for websockets. It has no limit of its own: a tunnel lasts as
// long as it lasts.
func (a *API) Web() *http.Client { return a.web }

// Credentials are the caller's.
func (a *API) Credentials() aws.CredentialsProvider { return a.cfg.Credentials }

// machineRole asks the machine that dlwb runs on for its role. Most have none, and
// are no instance of EC2: nobody waits there for as many tries as a call to AWS has.
// Which client it is is known only when the configuration has been read.
type machineRole struct{ *imds.Client }

// roleClient assumes roles at the endpoint of all other calls. The SDK makes its
// providers of credentials before it has read AWS_ENDPOINT_URL, and by itself asks
// the real AWS.
type roleClient struct {
	stscreds.AssumeRoleAPIClient
	stscreds.AssumeRoleWithWebIdentityAPIClient
	endpoint *string // nil: AWS's own
}

func (c *roleClient) there(o *sts.Options) {
	if c.endpoint != nil {
		o.BaseEndpoint = c.endpoint
	}
}

// AssumeRole implements stscreds.AssumeRoleAPIClient.
func (c *roleClient) AssumeRole(ctx context.Context, in *sts.AssumeRoleInput, how ...func(*sts.Options)) (*sts.AssumeRoleOutput, error) {
	return c.AssumeRoleAPIClient.AssumeRole(ctx, in, append(how, c.there)...)
}

// AssumeRoleWithWebIdentity implements stscreds.AssumeRoleWithWebIdentityAPIClient.
func (c *roleClient) AssumeRoleWithWebIdentity(ctx context.Context, in *sts.AssumeRoleWithWebIdentityInput,
	how ...func(*sts.Options)) (*sts.AssumeRoleWithWebIdentityOutput, error) {
	return c.AssumeRoleWithWebIdentityAPIClient.AssumeRoleWithWebIdentity(ctx, in, append(how, c.there)...)
}

// callLimit bounds one attempt of one call.
const callLimit = 30 * time.Second

// readAttempts is how often a call that changes nothing is tried.
const readAttempts = 6

func readRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = readAttempts
		o.MaxBackoff = 5 * time.Second
		o.Retryables = append([]retry.IsErrorRetryable{retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
			// Whoever gives credentials has tried as often as makes sense.
			if Unserved(err) || NotAWS(err) || proxyRefuses(err) || strings.HasPrefix(err.Error(), noIdentityStep) {
				return aws.FalseTernary
			}
			return aws.UnknownTernary
		})}, o.Retryables...)
	})
}

// Unserved reports whether an endpoint has nothing that serves a call, so that it
// makes no sense to ask again: it says so by 501, by the error page of its web
// server, which AWS does not send with a plain 500, or by an error that has none of
// AWS's words. It proves nothing.
func Unserved(err error) bool {
	var reply *smithyhttp.ResponseError
	if !errors.As(err, &reply) || reply.Response == nil {
		return false
	}
	page := strings.HasPrefix(reply.Response.Header.Get("Content-Type"), "text/html")
	status := reply.HTTPStatusCode()
	switch status {
	case http.StatusNotImplemented:
		return true
	case http.StatusInternalServerError:
		return page
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return NotAWS(err)
	}
	return false
}

// Once makes a call be sent one single time: whether a call that changes
// something is to be sent again is for the ledger to say.
func Once(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }

// client hides that a request's body can write itself. With smithy-go v1.28
// such a body is closed while net/http still writes it, which net/http takes
// for a failed write and cuts the connection, while the reply is being read.
type client struct{ aws.HTTPClient }

// Do sends a request.
func (c *client) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return c.HTTPClient.Do(r)
}

// Region is the region of the user's configuration; empty when it has none.
func (a *API) Region() string { return a.cfg.Region }

// EC2 is the client for EC2 in a region.
func (a *API) EC2(region string) *ec2.Client {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.ec2[region]
	if !ok {
		c = ec2.NewFromConfig(a.cfg, func(o *ec2.Options) { o.Region = region })
		a.ec2[region] = c
	}
	return c
}

// SSM is the client for Systems Manager in a region.
func (a *API) SSM(region string) *ssm.Client {
	return ssm.NewFromConfig(a.cfg, func(o *ssm.Options) { o.Region = region })
}

// Quotas is the client for Service Quotas in a region.
func (a *API) Quotas(region string) *servicequotas.Client {
	return servicequotas.NewFromConfig(a.cfg, func(o *servicequotas.Options) { o.Region = region })
}

// Pricing is the client for the price list of a region: it lives in us-east-1, and
// for the regions of China in Ningxia.
func (a *API) Pricing(region string) *pricing.Client {
	return pricing.NewFromConfig(a.cfg, func(o *pricing.Options) {
		if o.Region = "us-east-1"; strings.HasPrefix(region, "cn-") {
			o.Region = "cn-northwest-1"
		}
	})
}

// Near says where calls go that are for no region in particular, where the user's
// configuration has none: credentials of China and of GovCloud count in their own
// regions only.
func (a *API) Near(regions []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(regions) > 0 && a.near == "" {
		a.near = regions[0]
	}
}

// home is the region for what belongs to none.
func (a *API) home() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return cmp.Or(a.cfg.Region, a.near, "us-east-1")
}

// Identity is who the credentials belong to.
type Identity struct {
	Account string
	ARN     string
	UserID  string
}

// Principal is whose the things are that the caller makes; see [Principal].
func (i Identity) Principal() string { return Principal(i.ARN) }

// Principal is the part of a caller's ARN that is the same the next time. Who
// has assumed a role is arn:PARTITION:sts::ACCOUNT:assumed-role/ROLE/SESSION,
// and most sessions are named anew each time, by the nanosecond in the SDKs: the
// account and the role stay. Only the roles of IAM Identity Center, which many
// people share, have sessions that are named after the person.
// Forms: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html
func Principal(arn string) string {
	head, session, ok := cutLast(arn, "/")
	account, role, assumed := strings.Cut(head, ":assumed-role/")
	if !ok || !assumed || session == "" || strings.HasPrefix(role, "AWSReservedSSO_") {
		return arn
	}
	return account + ":assumed-role/" + role
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// Identity asks AWS whose credentials these are, and remembers the answer.
func (a *API) Identity(ctx context.Context) (Identity, error) {
	if known := a.remembered(); known != nil {
		return *known, nil
	}
	region := a.home()
	out, err := sts.NewFromConfig(a.cfg, func(o *sts.Options) { o.Region = region }).
		GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return Identity{}, err
	}
	id := Identity{aws.ToString(out.Account), aws.ToString(out.Arn), aws.ToString(out.UserId)}
	if id.ARN == "" { // whose things are looked for would be nobody's
		return Identity{}, &foreignError{"GetCallerIdentity", http.StatusOK, "nobody's name"}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.identity = &id
	return id, nil
}

func (a *API) remembered() *Identity {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.identity
}
