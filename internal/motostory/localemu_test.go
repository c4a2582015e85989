//go:build linux

package motostory

import "testing"

// LocalEmu, which began as LocalStack, has an EC2 of its own before moto's: no placement
// groups, no quotas, no prices, and an answer of its own to a dry run. The life of a
// cluster whose up is killed twice is the same there.
func TestLocalEmuHasTheLifeOfAClusterByTheRealDlwb(t *testing.T) {
	b := benchOf(t, "DLWB_LOCALEMU", `exec "$0" start --host 127.0.0.1 --port 5555`, "/_localemu/health")
	for range 2 { // it loads what serves a call when that comes first
		b.raw("DescribeRegions", "")
	}
	b.write("train.py", "print(1)\n")
	b.write("dlwb.yaml", "name: story\nprovider: ec2\nmachines: {region: us-east-1, instance: g5.xlarge, count: 2, image: "+b.image()+"}\n"+
		"run: {command: train.py}\nlimits: {lifetime: 1h, idle: 30m}\n")

	plan := b.run("plan")
	plan.says(t, "account 000000000000", "2 × g5.xlarge in us-east-1", "quota: not checked", "AWS would allow ImportKeyPair, CreateSecurityGroup, RunInstances")
	if plan.code != 0 || b.running()+b.left() != 0 {
		t.Fatalf("a plan: exit code %d, %d machines, %d other things\n%s", plan.code, b.running(), b.left(), plan.text)
	}
	b.killedOnce("two machines", func() bool { return b.running() == 2 }, "up", "--plain")
	b.killedOnce("two machines again", func() bool { return b.running() == 2 }, "up", "--plain")
	if n := b.running(); n != 2 {
		t.Fatalf("%d machines of two", n)
	}
	down := b.run("down", "--plain")
	down.says(t, "nothing is left", "seen terminated", "receipt: everything is gone")
	if down.code != 0 || b.running()+b.left() != 0 {
		t.Errorf("down: exit code %d, %d machines, %d other things\n%s", down.code, b.running(), b.left(), down.text)
	}
}
