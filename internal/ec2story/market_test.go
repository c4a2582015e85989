package ec2story

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
)

// offered is what dlwb offers --json says.
type offered struct {
	Offers []struct {
		Instance string  `json:"instance_type"`
		Region   string  `json:"region"`
		GPU      string  `json:"gpu"`
		GPUs     int     `json:"gpus"`
		PerGPU   float64 `json:"per_gpu_hour"`
		PerGB    float64 `json:"per_gpu_gb_hour"`
		Left     *int    `json:"quota_left"`
	} `json:"offers"`
	Live  bool     `json:"live"`
	Notes []string `json:"notes"`
}

func (r result) offered(t *testing.T) offered {
	t.Helper()
	var all map[string]json.RawMessage
	var o offered
	if err := json.Unmarshal([]byte(r.stdout), &all); err != nil || all["offers"] == nil {
		t.Fatalf("no {\"offers\": …} (%v): %s", err, r)
	}
	if err := json.Unmarshal([]byte(r.stdout), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOffersAreRankedForANeedWithAndWithoutAWS(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{})
	need := []string{"offers", "--region", "us-east-1", "--gpu", "A10G|L4", "--gpus", "4", "--memory", "22GB", "--max-price", "9", "--json"}
	began := time.Now()
	r := b.run(need...)
	cold := time.Since(began)
	live := r.offered(t)
	began = time.Now()
	b.run(need...)
	t.Logf("%d offers in %.2f s, again in %.2f s (a whole process)", len(live.Offers), cold.Seconds(), time.Since(began).Seconds())
	if r.code != 0 || !live.Live || len(live.Offers) < 2 {
		t.Fatal(r)
	}
	for i, o := range live.Offers {
		if o.GPUs < 4 || o.GPU != "A10G" && o.GPU != "L4" || o.PerGPU*float64(o.GPUs) > 9.001 || o.PerGB <= 0 {
			t.Errorf("not what was asked for: %+v", o)
		}
		if o.Left == nil {
			t.Errorf("the quota of %s is not known", o.Instance)
		}
		if i > 0 && o.PerGPU < live.Offers[i-1].PerGPU-1e-9 {
			t.Errorf("%s at $%.4f comes after %s at $%.4f", o.Instance, o.PerGPU, live.Offers[i-1].Instance, live.Offers[i-1].PerGPU)
		}
	}
	b.run("offers", "--region", "us-east-1", "--gpu", "A10G", "--limit", "1", "--plain").says(t, "INSTANCE", "$/GPU-H", "QUOTA", "A10G")

	without := b.command(need...)
	without.Env = append(without.Env, "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY=", "DLWB_HOME="+t.TempDir())
	nobody := b.command(need...)
	nobody.Env = append(nobody.Env, "AWS_ENDPOINT_URL=http://127.0.0.1:9", "DLWB_HOME="+t.TempDir())
	began = time.Now()
	for what, c := range map[string]result{"without credentials": b.play(without), "without a network": b.play(nobody)} {
		o := c.offered(t)
		if c.code != 0 || o.Live || len(o.Offers) == 0 || len(o.Notes) == 0 {
			t.Errorf("%s: %s", what, c)
			continue
		}
		t.Logf("%s: %d offers, the first %s at $%.3f a GPU; %s", what, len(o.Offers), o.Offers[0].Instance, o.Offers[0].PerGPU, strings.Join(o.Notes, "; "))
		if !strings.Contains(strings.Join(o.Notes, " "), "2026-07-20") && !strings.Contains(c.stdout, "2026-07-20") {
			t.Errorf("%s: the age of the prices is not said: %s", what, c)
		}
	}
	t.Logf("both took %.1f s", time.Since(began).Seconds())

	for flag, says := range map[string]string{"--memory=lots": "lots", "--gpus=-1": "--gpus", "--count=0": "--count", "--provider=cloud9": "cloud9", "--gpu-s=3": "gpu"} {
		r := b.run("offers", flag, "--json")
		e := r.last(t, "error")
		if r.code == 0 || !strings.Contains(fmt.Sprint(e["text"]), says) {
			t.Errorf("%s: %s", flag, r)
		}
	}
	if b.aws.Launched() > 0 {
		t.Error("offers launched something")
	}
}

// gc removes what a lost state directory knew of, and shows what is others'
// without touching it. What can't be looked into is named and keeps the
// account from counting as clean.
func TestWhatWasLostIsCollectedAndNothingElse(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{Regions: []fakeaws.Region{{Name: "us-east-1"}, {Name: "us-west-2"}, {Name: "ap-east-1", Disabled: true}}})
	b.profile(2, quiet)
	if r := b.run("up", "--plain"); r.code != 0 {
		t.Fatal(r)
	}
	host, _ := os.Hostname()
	foreign := func(region, kind, owner string) string {
		return b.aws.Plant(fakeaws.Planted{Kind: kind, Region: region, Age: time.Hour, Tags: map[string]string{
			"dlwb:life": "aaaabbbbcccc", "dlwb:cluster": "theirs", "dlwb:owner": owner, "dlwb:host": host, "dlwb:token": "dlwb-aaaabbbbcccc-run-0"}})
	}
	theirs := []string{foreign("us-west-2", "instance", "arn:aws:iam::999999999999:user/other"), foreign("us-east-1", "security-group", "arn:aws:iam::123456789012:user/colleague")}
	plain := b.aws.Plant(fakeaws.Planted{Kind: "instance", Region: "us-east-1", Tags: map[string]string{"Name": "prod"}})
	if err := os.RemoveAll(b.state()); err != nil {
		t.Fatal(err)
	}
	looked := b.run("gc", "--plain", "--now")
	if looked.code != 3 {
		t.Errorf("something is left and nobody said yes: %s", looked)
	}
	looked.says(t, "cluster story", "us-east-1", "/h", "not touched", "999999999999", "not enabled for this account: ap-east-1", "UNRESOLVED: 1 clusters of yours are left")
	if n := b.running(); n != 2 {
		t.Errorf("a look removed something: %d instances run", n)
	}
	r := b.run("gc", "--yes", "--plain")
	if r.code != 0 {
		t.Errorf("gc --yes: %s", r)
	}
	r.says(t, "cluster story: proven gone: true", "nothing of arn:aws:iam::123456789012:user/dlwb is left in 2 regions")
	b.nothingLeft("gc")
	if touched := b.aws.Touched(); len(touched) > 0 {
		t.Errorf("touched: %v", touched)
	}
	for _, id := range append(theirs, plain) {
		if !b.aws.Exists("us-west-2", id) && !b.aws.Exists("us-east-1", id) {
			t.Errorf("%s is gone", id)
		}
	}
	if strings.Contains(r.stdout, plain) {
		t.Errorf("it shows what is none of dlwb's: %s", r)
	}
}

func TestARegionThatDoesNotAnswerIsNamedAsBlind(t *testing.T) {
	long(t)
	t.Parallel()
	b := newBench(t, fakeaws.Options{Regions: []fakeaws.Region{{Name: "us-east-1"}, {Name: "us-west-2", Hangs: true}, {Name: "ap-east-1", Disabled: true}}})
	began := time.Now()
	r := b.run("gc", "--yes", "--json")
	t.Logf("one hanging region: %.1f s", time.Since(began).Seconds())
	var a struct {
		Clean  bool
		Blind  map[string]string
		Closed []string
		Looked []string
	}
	if err := json.Unmarshal([]byte(r.stdout), &a); err != nil {
		t.Fatalf("%v: %s", err, r)
	}
	if r.code != 3 || a.Clean || a.Blind["us-west-2"] == "" || len(a.Blind) != 1 || !slices.Equal(a.Closed, []string{"ap-east-1"}) || !slices.Equal(a.Looked, []string{"us-east-1"}) {
		t.Errorf("%+v: %s", a, r)
	}
	b.run("gc", "--now", "--plain").says(t, "blind: us-west-2: ", "not every region could be looked into", "not enabled for this account: ap-east-1")
}
