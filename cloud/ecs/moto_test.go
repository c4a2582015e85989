//go:build unix

package ecs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/testport"
)

// moto starts a stand-in for AWS that others made, and gives this process's way to it.
func moto(t *testing.T) {
	t.Helper()
	program := os.Getenv("DLWB_MOTO")
	if program == "" {
		t.Skip("it needs moto_server in DLWB_MOTO: make test-ecs installs it")
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", testport.Free(t))
	c := exec.Command(program, "-H", "127.0.0.1", "-p", url[len("http://127.0.0.1:"):])
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	for key, value := range map[string]string{"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "x", "AWS_SESSION_TOKEN": "", "AWS_REGION": "us-west-2",
		"AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(key, value)
	}
	for limit := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if r, err := http.Get(url + "/moto-api/"); err == nil {
			_ = r.Body.Close()
			return
		}
		if time.Now().After(limit) {
			t.Fatal("moto does not answer")
		}
	}
}

// kept is a ledger in memory.
type kept struct {
	mu  sync.Mutex
	all []cloud.Entry
}

func (k *kept) Intend(kind, token string, d any) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	text, err := json.Marshal(d)
	k.all = append(k.all, cloud.Entry{Kind: kind, Token: token, Detail: text, IntentAt: time.Now().Add(-awsapi.Settle())})
	return err
}

func (k *kept) set(token string, change func(*cloud.Entry)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.all {
		if k.all[i].Token == token {
			change(&k.all[i])
			return nil
		}
	}
	return fmt.Errorf("there is no entry %s", token)
}

func (k *kept) Resolve(token, id string) error {
	return k.set(token, func(e *cloud.Entry) { e.ID = id })
}

func (k *kept) Close(token, proof string) error {
	now := time.Now()
	return k.set(token, func(e *cloud.Entry) { e.ClosedAt, e.Proof = &now, proof })
}

func (k *kept) Entries() ([]cloud.Entry, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]cloud.Entry{}, k.all...), nil
}

// Another stand-in for AWS takes the same calls: all that a cluster is made of but its
// containers, which it does not run, a second time without making anything twice, and
// the removal with its proof. It has no placement groups, so the cluster has one worker.
func TestMotoTakesAClusterAndProvesItsEnd(t *testing.T) {
	moto(t)
	ledger := &kept{}
	life := cloud.Life{Name: "jobs", ID: "0123456789ab", Began: time.Now(), Dir: t.TempDir(), Ledger: ledger}
	p, spec := New(), cloud.Spec{Name: "jobs", Count: 1, Instance: "g4dn.xlarge", Image: "rayproject/ray:2.40.0-gpu", Lifetime: time.Hour}
	for range 2 {
		m, err := p.maker(t.Context(), life, spec, func(_ int, text string) { t.Log(text) })
		if err != nil {
			t.Fatal(err)
		}
		capacity, err := m.frame(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{head, worker} {
			if err := m.start(t.Context(), part); err != nil {
				t.Fatal(err)
			}
			task, err := m.task(t.Context(), part, "10.0.0.1")
			if err != nil {
				t.Fatal(err)
			}
			if err := m.service(t.Context(), part, task, capacity[part]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if entries, _ := ledger.Entries(); len(entries) != 3+2*5 {
		t.Errorf("the ledger has %d entries", len(entries))
	}
	r, err := p.Down(t.Context(), life, func(_ int, text string) { t.Log(text) })
	if err != nil || !r.Proven() {
		t.Errorf("%v: %+v", err, r)
	}
	entries, _ := ledger.Entries()
	for _, e := range entries {
		if e.Open() {
			t.Errorf("%s is open", e.Token)
		}
	}
}
