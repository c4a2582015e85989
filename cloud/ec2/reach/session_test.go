//go:build unix

package reach

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/dlwb/dlwb/internal/testprogram"
)

// sessions answers as Systems Manager does, and keeps what it was asked.
type sessions struct {
	started *ssm.StartSessionInput
	ended   []string
}

func (s *sessions) StartSession(_ context.Context, in *ssm.StartSessionInput, _ ...func(*ssm.Options)) (*ssm.StartSessionOutput, error) {
	s.started = in
	return &ssm.StartSessionOutput{SessionId: aws.String("s-1"), TokenValue: aws.String("secret"), StreamUrl: aws.String("wss://x")}, nil
}

func (s *sessions) TerminateSession(_ context.Context, in *ssm.TerminateSessionInput, _ ...func(*ssm.Options)) (*ssm.TerminateSessionOutput, error) {
	s.ended = append(s.ended, *in.SessionId)
	return &ssm.TerminateSessionOutput{}, nil
}

// The plugin of this test stands in for AWS's, which is not to be had everywhere: it
// tells what it was called with, then carries what it gets.
func TestASessionIsCarriedByThePlugin(t *testing.T) {
	bin := t.TempDir()
	script := "#!/bin/sh\necho \"$# $1 $2 $3 [$5] $6 | $AWS_SSM_START_SESSION_RESPONSE\"\nexec cat\n"
	if err := testprogram.Write(filepath.Join(bin, Plugin), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	api := &sessions{}
	c, err := Session(t.Context(), api, "eu-west-1", "", "i-0abc", "22")
	if err != nil {
		t.Fatal(err)
	}
	want := `6 AWS_SSM_START_SESSION_RESPONSE eu-west-1 StartSession [{"DocumentName":"AWS-StartSSHSession","Parameters":{"portNumber":["22"]},"Target":"i-0abc"}]` +
		` https://ssm.eu-west-1.amazonaws.com | {"SessionId":"s-1","StreamUrl":"wss://x","TokenValue":"secret"}` + "\nSSH-2.0-x\n"
	if _, err := io.WriteString(c, "SSH-2.0-x\n"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Errorf("it was called with %s, and %v", got, err)
	}
	if api.started == nil || *api.started.Target != "i-0abc" || *api.started.DocumentName != sshDocument {
		t.Errorf("asked for %+v", api.started)
	}
	for range 2 {
		_ = c.Close()
	}
	if strings.Join(api.ended, " ") != "s-1" {
		t.Errorf("ended %v", api.ended)
	}
}
