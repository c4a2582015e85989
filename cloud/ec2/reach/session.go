package reach

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
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

// Sessions are the calls that begin and end a session.
type Sessions interface {
	StartSession(context.Context, *ssm.StartSessionInput, ...func(*ssm.Options)) (*ssm.StartSessionOutput, error)
	TerminateSession(context.Context, *ssm.TerminateSessionInput, ...func(*ssm.Options)) (*ssm.TerminateSessionOutput, error)
}

// document is the kind of session that carries ssh.
const document = "AWS-StartSSHSession"

// responseVariable hands the answer with the session's token to the plugin: its
// arguments can be read by everybody on this machine.
const responseVariable = "AWS_SSM_START_SESSION_RESPONSE"

// Session connects to the sshd of an instance by a session of Systems Manager.
// endpoint is where its service answers; empty: AWS.
func Session(ctx context.Context, api Sessions, region, endpoint, instance, port string) (net.Conn, error) {
	plugin, err := PluginAt()
	if err != nil {
		return nil, err
	}
	in := &ssm.StartSessionInput{DocumentName: aws.String(document), Target: &instance, Parameters: map[string][]string{"portNumber": {port}}}
	out, err := api.StartSession(ctx, in)
	if err != nil {
		return nil, err
	}
	if endpoint == "" {
		endpoint = "https://ssm." + region + ".amazonaws.com"
	}
	answer, err := json.Marshal(map[string]*string{"SessionId": out.SessionId, "TokenValue": out.TokenValue, "StreamUrl": out.StreamUrl})
	if err != nil {
		return nil, err
	}
	asked, err := json.Marshal(map[string]any{"Target": instance, "DocumentName": document, "Parameters": in.Parameters})
	if err != nil {
		return nil, err
	}
	// The connection outlives the dial.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), plugin, responseVariable, region, "StartSession", os.Getenv("AWS_PROFILE"), string(asked), endpoint)
	cmd.Env = append(os.Environ(), responseVariable+"="+string(answer))
	terminate := func() {
		ctx, cancel := context.WithTimeout(context.Background(), endLimit)
		defer cancel()
		_, _ = api.TerminateSession(ctx, &ssm.TerminateSessionInput{SessionId: out.SessionId}) // AWS ends idle ones by itself
	}
	conn, err := programconn.Start(cmd, Plugin, terminate)
	if err != nil {
		terminate()
		return nil, fmt.Errorf("start %s: %w", Plugin, err)
	}
	return conn, nil
}

// endLimit bounds the call that ends a session.
const endLimit = 5 * time.Second
