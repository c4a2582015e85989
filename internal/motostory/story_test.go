//go:build linux

package motostory

import (
	"fmt"
	"os"
	"testing"
)

// A cluster of two on the spot market, with a dlwb that is killed twice on the way:
// nothing is made by a plan, the second up goes on with the machines of the first,
// and down proves that nothing is left. What moto lacks is said, and in nobody's way.
func TestMotoHasTheLifeOfAClusterByTheRealDlwb(t *testing.T) {
	for name, market := range map[string]string{"on demand": "", "spot": ", spot: true", "spot or else on demand": ", spot: true, spot_fallback: true"} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write("train.py", "print(1)\n")
			b.write("dlwb.yaml", fmt.Sprintf("name: story\nprovider: ec2\nmachines: {region: us-east-1, instance: g5.xlarge, count: 2, image: %s%s}\n"+
				"run: {command: train.py}\nlimits: {lifetime: 1h, idle: 30m}\n", b.image(), market))
			b.hasALife("account 123456789012")
		})
	}
}

// hasALife tells the life of the cluster of two that the profile asks for. A plan makes
// nothing, takes what is not served for unknown, and says what is particular here.
func (b *bench) hasALife(particular ...string) {
	b.t.Helper()
	plan := b.run("plan")
	plan.says(b.t, particular...)
	plan.says(b.t, "AWS_ENDPOINT_URL", "2 × g5.xlarge in us-east-1", "quota: not checked", "at most")
	if plan.code != 0 || b.running()+b.left() != 0 {
		b.t.Fatalf("a plan: exit code %d, %d machines, %d other things\n%s", plan.code, b.running(), b.left(), plan.text)
	}
	b.killedOnce("two machines", func() bool { return b.running() == 2 }, "up", "--plain")
	b.killedOnce("two machines again", func() bool { return b.running() == 2 }, "up", "--plain")
	if n := b.running(); n != 2 {
		b.t.Fatalf("%d machines of two", n)
	}
	if all := b.clusters(); len(all) != 1 || all[0]["name"] != "story" {
		b.t.Errorf("ls: %v", all)
	}
	down := b.run("down", "--plain")
	down.says(b.t, "nothing is left", "seen terminated", "receipt: everything is gone")
	if down.code != 0 || b.running()+b.left() != 0 {
		b.t.Errorf("down: exit code %d, %d machines, %d other things\n%s", down.code, b.running(), b.left(), down.text)
	}
	if all := b.clusters(); len(all) != 0 {
		b.t.Errorf("ls after down: %v", all)
	}
}

// The state directory is lost: gc finds what it knew of by the tags, removes it when
// it is told to, and does not call an account clean of which it can't see all.
func TestMotoShowsGCWhatALostStateDirectoryHas(t *testing.T) {
	b := newBench(t)
	b.write("train.py", "print(1)\n")
	b.write("dlwb.yaml", fmt.Sprintf("name: story\nprovider: ec2\nmachines: {region: us-east-1, instance: g5.xlarge, image: %s}\n"+
		"run: {command: train.py}\nlimits: {lifetime: 1h, idle: 30m}\n", b.image()))
	b.killedOnce("a machine", func() bool { return b.running() == 1 }, "up", "--plain")
	theirs := b.raw("RunInstances", "&ImageId="+b.image()+"&MinCount=1&MaxCount=1&InstanceType=t3.micro")
	if err := os.RemoveAll(b.state()); err != nil {
		t.Fatal(err)
	}
	// moto answers 200 calls one after the other, and what a region may take is a part
	// of the settle window.
	slow := func(args ...string) told {
		c := b.command(args...)
		c.Env = append(c.Env, "DLWB_SETTLE=30s")
		return b.play(c)
	}
	look := slow("gc", "--plain", "--now")
	look.says(t, "cluster story", "us-east-1", "UNRESOLVED: 1 clusters of yours are left")
	if look.code != 3 || b.running() != 2 {
		t.Fatalf("a look: exit code %d, %d machines\n%s", look.code, b.running(), look.text)
	}
	b.run("gc", "--plain", "--yes")
	gc := slow("gc", "--plain", "--now")
	gc.says(t, "nothing of arn:aws:sts::123456789012:user/moto is left")
	if gc.code != 0 {
		t.Errorf("exit code %d", gc.code)
	}
	if n := b.running(); n != 1 {
		t.Errorf("%d machines run, and one is somebody else's (%.200s):\n%s", n, theirs, gc.text)
	}
	if n := b.left(); n != 0 {
		t.Errorf("%d things are left:\n%s", n, gc.text)
	}
}
