package reach

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/dlwb/dlwb/internal/programconn"
)

// Plugin is AWS's own program for the streams of Systems Manager's sessions.
const Plugin = "session-manager-plugin"

// PluginAt is where it is installed here.
func PluginAt() (string, error) {
	at, err := exec.LookPath(Plugin)
	if err != nil {
		return "", fmt.Errorf("%s is not installed here: https://docs.aws.amazon.com/systems-manager/latest/userguide/session-manager-working-with-install-plugin.html", Plugin)
	}
	return at, nil
}

// lastSecretInArguments is the last version that takes the token of a session by its
// arguments alone, as the AWS CLI has it.
var lastSecretInArguments = []int{1, 2, 497, 0}

// versionLimit bounds the question for its version.
const versionLimit = 5 * time.Second

// Ready is where the plugin is installed here, if it takes the token of a session by its
// environment.
func Ready(ctx context.Context) (string, error) {
	at, err := PluginAt()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	said, err := exec.CommandContext(ctx, at, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s does not tell its version: %w", Plugin, err)
	}
	version := strings.TrimSpace(string(said))
	if slices.Compare(numbers(version), lastSecretInArguments) <= 0 {
		return "", fmt.Errorf("%s %.20q is too old: it takes the token of a session by its arguments, which everybody on this machine may read; a version after 1.2.497.0 is needed", Plugin, version)
	}
	return at, nil
}

// numbers are those of a version.
func numbers(version string) (all []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil
		}
		all = append(all, n)
	}
	return all
}

// Sessions are the calls that begin and end a session.
type Sessions interface {
	StartSession(context.Context, *ssm.StartSessionInput, ...func(*ssm.Options)) (*ssm.StartSessionOutput, error)
	TerminateSession(context.Context, *ssm.TerminateSessionInput, ...func(*ssm.Options)) (*ssm.TerminateSessionOutput, error)
}

// The kinds of sessions, by the documents that AWS has for them; a shell has none.
const (
	sshDocument  = "AWS-StartSSHSession"
	portDocument = "AWS-StartPortForwardingSession"
)

// responseVariable hands the answer with the session's token to the plugin: its
// arguments can be read by everybody on this machine.
const responseVariable = "AWS_SSM_START_SESSION_RESPONSE"

// Target is what sessions lead to.
type Target struct {
	API    Sessions
	Region string
	// Endpoint is where the service answers; empty: AWS.
	Endpoint string
	// ID is an instance, or the container of a training job.
	ID string
}

// begun is a session that AWS has begun: how the plugin carries it, and what ends it.
type begun struct {
	argv, env []string
	terminate func()
}

// begin begins a session; an empty document: that of a shell.
func (t Target) begin(ctx context.Context, plugin, document string, parameters map[string][]string) (b begun, err error) {
	in, asked := &ssm.StartSessionInput{Target: &t.ID, Parameters: parameters}, map[string]any{"Target": t.ID}
	if document != "" {
		in.DocumentName = &document
		asked["DocumentName"], asked["Parameters"] = document, parameters
	}
	endpoint := t.Endpoint
	if endpoint == "" {
		at, err := ssm.NewDefaultEndpointResolverV2().ResolveEndpoint(ctx, ssm.EndpointParameters{Region: &t.Region})
		if err != nil {
			return b, err
		}
		endpoint = at.URI.String()
	}
	out, err := t.API.StartSession(ctx, in)
	if err != nil {
		return b, err
	}
	b.terminate = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), endLimit)
		defer cancel()
		_, _ = t.API.TerminateSession(ctx, &ssm.TerminateSessionInput{SessionId: out.SessionId}) // AWS ends idle ones by itself
	})
	answer, err := json.Marshal(map[string]*string{"SessionId": out.SessionId, "TokenValue": out.TokenValue, "StreamUrl": out.StreamUrl})
	if err != nil {
		return b, err
	}
	request, err := json.Marshal(asked)
	b.argv = []string{plugin, responseVariable, t.Region, "StartSession", os.Getenv("AWS_PROFILE"), string(request), endpoint}
	b.env = append(os.Environ(), responseVariable+"="+string(answer))
	return b, err
}

// Session connects to the sshd of an instance by a session of Systems Manager.
// endpoint is where its service answers; empty: AWS.
func Session(ctx context.Context, api Sessions, region, endpoint, instance, port string) (net.Conn, error) {
	plugin, err := PluginAt()
	if err != nil {
		return nil, err
	}
	b, err := Target{api, region, endpoint, instance}.begin(ctx, plugin, sshDocument, map[string][]string{"portNumber": {port}})
	if err != nil {
		return nil, err
	}
	// The connection outlives the dial.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), b.argv[0], b.argv[1:]...)
	cmd.Env = b.env
	conn, err := programconn.Start(cmd, Plugin, b.terminate)
	if err != nil {
		b.terminate()
		return nil, fmt.Errorf("start %s: %w", Plugin, err)
	}
	return conn, nil
}

// Shell begins a session with a shell. The program, which is not started yet, wants the
// terminal as its streams; end ends the session, once the program has ended or could not
// be started. The program ends with ctx.
func (t Target) Shell(ctx context.Context) (program *exec.Cmd, end func(), err error) {
	plugin, err := Ready(ctx)
	if err != nil {
		return nil, nil, err
	}
	b, err := t.begin(ctx, plugin, "", nil)
	if err != nil {
		return nil, nil, err
	}
	program = exec.CommandContext(ctx, b.argv[0], b.argv[1:]...)
	program.Env = b.env
	return program, b.terminate, nil
}

// endLimit bounds the call that ends a session.
const endLimit = 5 * time.Second
