package ec2

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// moto starts the stand-in for AWS that most Python projects test with. Nobody
// here made it, and it lacks much. `make test-moto` brings it.
func moto(t *testing.T) (endpoint string) {
	t.Helper()
	program := os.Getenv("DLWB_MOTO")
	if program == "" {
		t.Skip("make test-moto runs this, with moto from PyPI")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	said := filepath.Join(t.TempDir(), "moto.log")
	log, err := os.Create(said)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-p", fmt.Sprint(port))
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
	endpoint = fmt.Sprintf("http://127.0.0.1:%d", port)
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if reply, err := http.Get(endpoint + "/moto-api/"); err == nil {
			_ = reply.Body.Close()
			return endpoint
		}
	}
	b, _ := os.ReadFile(said)
	t.Fatalf("moto does not answer:\n%s", b)
	return ""
}

// motoEnv makes the environment that of somebody who has assumed a role there.
func motoEnv(t *testing.T, endpoint string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"config": "[profile lab]\nrole_arn = arn:aws:iam::123456789012:role/researcher\nsource_profile = base\nregion = us-east-1\n",
		"keys":   "[base]\naws_access_key_id = AKIAIOSFODNN7EXAMPLE\naws_secret_access_key = x\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "keys"))
	t.Setenv("AWS_PROFILE", "lab")
	t.Setenv("AWS_ENDPOINT_URL", endpoint)
}

// The whole of it on a stand-in that nobody here made: the role is assumed there,
// a plan leaves nothing, two machines come and are proven gone, and what a lost
// ledger leaves is found by the next session of the role.
func TestMotoHasAClusterFromPlanToProof(t *testing.T) {
	motoEnv(t, moto(t))
	fresh := func(settle time.Duration) *Provider { return New(Options{Dir: t.TempDir(), Settle: settle}) }
	say := func(_ int, text string) { t.Log(text) }
	p := fresh(2 * time.Second)
	spec := cloud.Spec{Name: "train", Count: 1, Regions: []string{"us-east-1"}, Instance: "g5.xlarge", Image: motoImage(t, p),
		Lifetime: time.Hour, Idle: time.Hour}

	pre := p.Check(t.Context(), spec)
	for _, f := range pre.Findings {
		t.Logf("%v %s: %s", f.OK, f.What, f.Text)
		if !f.OK {
			t.Errorf("%s: %s", f.What, f.Text)
		}
	}
	if f := findingOf(t, pre, "credentials"); !strings.Contains(f.Text, "assumed-role/researcher") {
		t.Error("the role was not assumed there:", f.Text)
	}
	if f := findingOf(t, pre, "zones"); !strings.Contains(f.Text, "us-east-1a") {
		t.Error(f.Text)
	}
	if left := motoHas(t, p); left != "" {
		t.Error("a plan has left", left)
	}

	life := cloud.Life{Name: "train", ID: "0123456789ab", Began: time.Now(), Dir: t.TempDir(), Ledger: &memory{}}
	if c, err := p.Up(t.Context(), life, spec, say); err != nil || len(c.Nodes) != 1 {
		t.Fatalf("%v %+v", err, c)
	}
	receipt, err := fresh(2*time.Second).Down(t.Context(), life, say)
	if err != nil || !receipt.Proven() {
		t.Errorf("%v %+v", err, receipt)
	}
	if left := motoHas(t, p); left != "" {
		t.Error("left:", left)
	}

	lost := cloud.Life{Name: "train", ID: "ba9876543210", Began: time.Now(), Dir: t.TempDir(), Ledger: &memory{}}
	if _, err := p.Up(t.Context(), lost, spec, say); err != nil {
		t.Fatal(err)
	}
	hunt, err := fresh(2*time.Minute).Orphans(t.Context(), func(string) bool { return false }, say) // another session of the role
	if err != nil || len(hunt.Orphans) != 1 || hunt.Orphans[0].Foreign || hunt.Orphans[0].Life != lost.ID {
		t.Fatalf("%v %+v", err, hunt.Orphans)
	}
	if _, err := fresh(2*time.Second).Down(t.Context(), lost, say); err != nil {
		t.Error(err)
	}
}

// motoImage is an image for Linux that moto has.
func motoImage(t *testing.T, p *Provider) string {
	t.Helper()
	ec2, err := p.connect(t.Context(), "us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	out, err := ec2.DescribeImages(t.Context(), &awsec2.DescribeImagesInput{Filters: []types.Filter{
		filter("architecture", "x86_64"), filter("root-device-type", "ebs"), filter("name", "ubuntu/*")}})
	if err != nil || len(out.Images) == 0 {
		t.Fatal("moto has no image: ", err)
	}
	return aws.ToString(out.Images[0].ImageId)
}

// motoHas is what there is that dlwb makes; empty: nothing.
func motoHas(t *testing.T, p *Provider) string {
	t.Helper()
	ec2, err := p.connect(t.Context(), "us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, k := range resourceKinds {
		found, err := k.list(t.Context(), ec2, []types.Filter{filter("tag-key", tagLife)})
		if err != nil && !awsapi.Unserved(err) {
			t.Fatal(k.name, err)
		}
		for _, f := range found {
			if !f.gone {
				all = append(all, f.kind+" "+f.id)
			}
		}
	}
	return strings.Join(all, ", ")
}
