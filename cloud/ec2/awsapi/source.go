package awsapi

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// sources are the SDK's names for the places where credentials come from.
var sources = []struct{ prefix, words string }{
	{"EnvConfigCredentials", "the environment (AWS_ACCESS_KEY_ID)"},
	{"SharedConfigCredentials", "the AWS profile {profile}"},
	{"SSOProvider", "the AWS profile {profile} (SSO)"},
	{"LoginProvider", "the AWS profile {profile} (aws login)"},
	{"AssumeRoleProvider", "the AWS profile {profile} (an assumed role)"},
	{"ProcessProvider", "the AWS profile {profile} (credential_process)"},
	{"WebIdentityCredentials", "a web identity (AWS_ROLE_ARN)"},
	{"EC2RoleProvider", "the role of this EC2 instance"},
	{"CredentialsEndpointProvider", "the role of this container"},
}

// Source says where the credentials come from, in words, and never what they
// are. It may have to ask for them: the error is one for Explain.
func (a *API) Source(ctx context.Context) (string, error) {
	if a.cfg.Credentials == nil {
		return "nowhere", nil
	}
	got, err := a.cfg.Credentials.Retrieve(ctx)
	if err != nil {
		return "", &identityError{err}
	}
	for _, s := range sources {
		if strings.HasPrefix(got.Source, s.prefix) {
			return strings.ReplaceAll(s.words, "{profile}", a.profile()), nil
		}
	}
	return got.Source, nil
}

// identityError is a failure to get credentials, before any call.
type identityError struct{ err error }

func (e *identityError) Error() string { return "get identity: " + e.err.Error() }

func (e *identityError) Unwrap() error { return e.err }

// profile is the name of the profile in use.
func (a *API) profile() string {
	for _, s := range a.cfg.ConfigSources {
		if shared, ok := s.(config.SharedConfig); ok && shared.Profile != "" {
			return shared.Profile
		}
	}
	return "default"
}

// Endpoint is where calls of EC2 go when the user has pointed them elsewhere, all of
// them or those alone (AWS_ENDPOINT_URL_EC2, services in the profile);
// empty for AWS itself.
func (a *API) Endpoint() string {
	return aws.ToString(ec2.NewFromConfig(a.cfg).Options().BaseEndpoint)
}
