package ec2story

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
	"github.com/dlwb/dlwb/internal/sample"
)

// Machines that answer one after the other are reached as they come: the
// cluster stands soon after the last one does. How soon is what
// BenchmarkUpAfterTheLastAnswer measures; the bound here is only broken where machines
// are dialed in turn, or after pauses that get longer and longer.
func TestSSHIsSeenSoonAfterTheLastMachineAnswers(t *testing.T) {
	sample.Leave(t)
	long(t)
	if took := afterTheLastAnswer(t); took > 20*time.Second {
		t.Errorf("4 machines that answer 0.6 to 2.4 s after their start: up %s after the last one answered", took)
	}
}

func BenchmarkUpAfterTheLastAnswer(b *testing.B) {
	var took []time.Duration
	for range 3 {
		took = append(took, afterTheLastAnswer(b))
	}
	slices.Sort(took)
	b.ReportMetric(took[1].Seconds(), "s/up")
}

// afterTheLastAnswer is the time from the first moment at which all four
// machines take connections until the cluster step ends.
func afterTheLastAnswer(t testing.TB) time.Duration {
	t.Helper()
	b := newBench(t, fakeaws.Options{})
	b.profile(4, quiet)
	b.rig.AnswerAfter("", time.Hour)
	d := b.start("up", "--json")
	b.eventually("four machines are launched", func() bool { return len(b.aws.Instances()) == 4 })
	var all []string
	for i, line := range b.aws.Instances() {
		id := strings.Fields(line)[1]
		all = append(all, id)
		b.rig.AnswerAfter(id, time.Duration(i+1)*600*time.Millisecond)
	}
	e := d.await("the cluster", func(e printedEvent) bool { return e["event"] == "step_ended" && e["step"] == "cluster" })
	var last time.Time
	for _, id := range all {
		at := b.rig.Answering(id)
		if at.IsZero() {
			t.Fatalf("%s does not answer", id)
		}
		if at.After(last) {
			last = at
		}
	}
	took := e["seen"].(time.Time).Sub(last)
	if r := d.end(); r.code != 0 {
		t.Fatal(r)
	}
	if r := b.run("down", "story", "--plain"); r.code != 0 {
		t.Error(r)
	}
	b.nothingLeft(fmt.Sprint("after ", took))
	return took
}

// What a plan needs to know of AWS's offers is remembered for a while. How long a plan
// takes then is a matter of BenchmarkWarmOffers and
// BenchmarkWarmChoose (cloud/ec2/catalog).
func TestAPlanAsksAWSOnceForWhatItOffers(t *testing.T) {
	long(t)
	b := newBench(t, fakeaws.Options{})
	b.profile(4, quiet)
	asked := func() map[string]int {
		b.aws.Forget()
		r := b.run("plan", "--json")
		if r.code != 0 {
			t.Fatal(r)
		}
		r.says(t, "g5.xlarge", `"price_per_hour":4.1`)
		n := map[string]int{}
		for _, c := range b.aws.Calls() {
			n[c.Action]++
		}
		return n
	}
	cold, warm := asked(), asked()
	for _, action := range []string{"DescribeAvailabilityZones", "DescribeInstanceTypeOfferings", "DescribeInstanceTypes",
		"DescribeSpotPriceHistory", "GetParametersByPath", "GetProducts", "GetServiceQuota"} {
		if cold[action] == 0 || warm[action] > 0 {
			t.Errorf("%s: %d times at first, %d times then", action, cold[action], warm[action])
		}
	}
}
