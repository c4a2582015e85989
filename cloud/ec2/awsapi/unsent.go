package awsapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/processcreds"
	"github.com/aws/aws-sdk-go-v2/credentials/ssocreds"
	"github.com/aws/smithy-go"
)

// Login says how to get credentials.
const Login = "aws configure sso, then aws sso login; or aws configure; or export AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"

// noIdentityStep is how the SDK begins when there are no credentials to sign with.
const noIdentityStep = "get identity: "

// unsent explains an error that kept the call from being sent at all; nil for
// any other.
func unsent(err error, c Call) *Problem {
	if p := configuration(err); p != nil {
		return p
	}
	step := firstStep(err)
	var identity *identityError
	switch {
	case errors.As(err, &identity), strings.HasPrefix(step, noIdentityStep):
		return noIdentity(err)
	case httpStatus(err) > 0:
		return nil
	case strings.Contains(step, "Invalid Configuration: Missing Region"):
		return &Problem{Kind: BadRequest, Err: err, Cause: "no AWS region is given",
			Next: "machines.region in the profile, or export AWS_REGION=us-east-1"}
	case strings.HasPrefix(step, "failed to resolve service endpoint"), strings.HasPrefix(step, "resolve auth scheme: "), strings.Contains(step, ": unsupported protocol scheme "):
		return &Problem{Kind: BadRequest, Err: err, Cause: "the AWS endpoint can't be used: " + quote(step),
			Next: "see AWS_ENDPOINT_URL and the region's name: aws ec2 describe-regions --all-regions"}
	}
	var invalid smithy.InvalidParamsError
	var serial *smithy.SerializationError
	if errors.As(err, &invalid) || errors.As(err, &serial) {
		return &Problem{Kind: BadRequest, Err: err, Cause: c.Action + " can't be put into a request: " + quote(err.Error()),
			Next: "this is a fault of dlwb: please report it"}
	}
	return unreachable(err, c)
}

// firstStep is what the outermost operation failed at, in the SDK's words. It
// is read from that place only, where no text of a server can stand in front.
func firstStep(err error) string {
	var op *smithy.OperationError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return ""
}

// configError is that the configuration can't be made use of, before any call.
type configError struct{ err error }

func (e *configError) Error() string { return "read the AWS configuration: " + e.err.Error() }

func (e *configError) Unwrap() error { return e.err }

// configuration explains a configuration that can't be read.
func configuration(err error) *Problem {
	var unusable *configError
	var none config.SharedConfigProfileNotExistError
	var unreadable config.SharedConfigLoadError
	var role config.SharedConfigAssumeRoleError
	p := &Problem{Kind: NoCredentials, Err: err}
	switch {
	case errors.As(err, &role):
		p.Cause = fmt.Sprintf("the AWS profile %q can't assume its role %s", role.Profile, role.RoleARN)
		p.Next = "see source_profile in ~/.aws/config: aws configure list --profile " + role.Profile
	case errors.As(err, &none):
		p.Cause = fmt.Sprintf("there is no AWS profile %q", none.Profile)
		p.Next = "aws configure list-profiles, then export AWS_PROFILE to one of them"
	case errors.As(err, &unreadable):
		p.Cause = "the AWS configuration " + unreadable.Filename + " can't be read"
		p.Next = "aws configure list"
	case errors.As(err, &unusable):
		p.Cause = "the AWS configuration can't be used: " + quote(unusable.err.Error())
		p.Next = "see the AWS_… variables of the environment, and aws configure list"
	default:
		return nil
	}
	return p
}

// ssoRefused reports whether the portal of SSO takes the token no more, which may
// be before its time: the session was ended there.
func ssoRefused(err error) bool {
	var op *smithy.OperationError
	var api smithy.APIError
	for inner := err; errors.As(inner, &op); inner = op.Err {
		if (op.ServiceID == "SSO" || op.ServiceID == "SSO OIDC") && errors.As(op, &api) {
			switch api.ErrorCode() {
			case "UnauthorizedException", "InvalidGrantException", "ExpiredTokenException":
				return true
			}
		}
	}
	return false
}

// noIdentity explains why there are no credentials to sign a call with. What a
// credential process printed is never shown: it may be the secret.
func noIdentity(err error) *Problem {
	p := &Problem{Kind: NoCredentials, Err: err, Next: Login}
	var sso *ssocreds.InvalidTokenError
	var process *processcreds.ProviderError
	var inner smithy.APIError
	switch {
	case errors.Is(err, context.Canceled):
		p.Cause = "the search for AWS credentials was interrupted"
	case errors.As(err, &process):
		p.Cause = "the credential_process of the AWS profile gives no credentials"
		p.Next = "run the credential_process of ~/.aws/config by hand"
	case errors.As(err, &sso), strings.Contains(err.Error(), "SSO token"), ssoRefused(err):
		p.Cause = "the AWS SSO session has expired, or there was none"
		p.Next = "aws sso login" + profileFlag()
	case strings.Contains(err.Error(), "login session"), strings.Contains(err.Error(), "login token"):
		p.Cause = "the AWS login session has expired, or there was none"
		p.Next = "aws login" + profileFlag()
	case strings.Contains(err.Error(), "operation error ec2imds: "), strings.Contains(err.Error(), "EC2 IMDS role"): // nobody, or a portal, answers there
		p.Cause = "no AWS credentials were found: not in the environment, not in ~/.aws, and this machine has no role"
	case errors.As(err, &inner):
		p.Code = inner.ErrorCode()
		p.Cause = "AWS gives no credentials (" + p.Code + "): " + quote(inner.ErrorMessage())
		p.Next = "aws sts get-caller-identity" + profileFlag()
	default:
		p.Cause = "no AWS credentials could be got: " + quote(err.Error())
		p.Next = "aws sts get-caller-identity" + profileFlag()
	}
	return p
}

// profileFlag names the profile for a command line.
func profileFlag() string {
	if name := os.Getenv("AWS_PROFILE"); name != "" {
		return " --profile " + name
	}
	return ""
}

// unreachable explains a connection that never came to be.
func unreachable(err error, c Call) *Problem {
	var dns *net.DNSError
	var op *net.OpError
	var refused *proxyRefused
	p := &Problem{Kind: Unreachable, Err: err}
	switch {
	case errors.As(err, &refused):
		p.Cause, p.Next = refused.Error(), refused.advice()
	case errors.As(err, &dns):
		p.Cause = "the name " + dns.Name + " can't be resolved: there is no network, or no such region"
		p.Next = "see the network, and the region's name: aws ec2 describe-regions --all-regions"
	case untrusted(err):
		p.Cause = "the certificate of the AWS endpoint is not trusted: something between here and AWS answers in its place"
		p.Next = "behind an inspecting proxy: export AWS_CA_BUNDLE to its certificate; see HTTPS_PROXY and AWS_ENDPOINT_URL"
	case errors.As(err, &op) && op.Op == "proxyconnect":
		p.Cause = "the proxy can't be reached"
		p.Next = "see HTTPS_PROXY and NO_PROXY"
	case errors.As(err, &op) && op.Op == "dial" && errors.Is(err, syscall.ECONNREFUSED):
		p.Cause = "nothing listens where AWS is expected: " + quote(op.Error())
		p.Next = "see AWS_ENDPOINT_URL, HTTPS_PROXY and the firewall"
	case errors.As(err, &op) && op.Op == "dial":
		p.Cause = "AWS can't be reached from here: " + quote(op.Error())
		p.Next = "see the network, HTTPS_PROXY and the firewall"
	default:
		return nil
	}
	return p
}

// untrusted reports whether a connection was given up for its certificate,
// which is before anything is sent.
func untrusted(err error) bool {
	var verify *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &verify) || errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid)
}

// doubt explains a call that was sent and of which no answer is understood.
func doubt(err error, c Call) *Problem {
	p := &Problem{Kind: Unknown, Err: err, Next: nextDoubt(err, c)}
	action := cmp.Or(c.Action, "the call")
	var garbled *smithy.DeserializationError
	var foreign *foreignError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &foreign):
		p.Cause, p.Next = foreign.Error(), nextBetween
	case errors.Is(err, context.Canceled):
		p.Cause = action + " was interrupted before AWS answered"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		p.Cause = "AWS did not answer " + action + " in time"
	case Unserved(err):
		p.Cause = fmt.Sprintf("the endpoint does not serve %s: it answered with HTTP %d and no word of AWS's", action, httpStatus(err))
	case errors.As(err, &garbled):
		p.Cause = "AWS's answer to " + action + " was cut off or is not understood"
	case httpStatus(err) > 0:
		p.Cause = fmt.Sprintf("something answered %s with HTTP %d and no word of AWS's", action, httpStatus(err))
		if NotAWS(err) {
			p.Next = nextBetween
		}
	default:
		p.Cause = "the connection broke during " + action + ": " + quote(innermost(err).Error())
	}
	p.Cause += c.doubtful()
	return p
}

// nextBetween is for answers of what stands between here and AWS.
const nextBetween = "does this network want a login first, or a proxy? see HTTPS_PROXY, NO_PROXY and AWS_ENDPOINT_URL"

// nextDoubt is what to do about a call of which nobody knows what became of it: it is
// looked for where it may have made something.
func nextDoubt(err error, c Call) string {
	if c.changes() && service(err) == "ec2" {
		return c.words("", "").Replace(nextUnknown)
	}
	return "try again; is AWS itself well? https://health.aws.amazon.com/health/status"
}

// innermost is what everything else is wrapped around.
func innermost(err error) error {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return err
}
