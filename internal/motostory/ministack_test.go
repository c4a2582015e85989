//go:build linux

package motostory

import "testing"

// ministack carries dry runs out, knows no offerings and no filter of types, keeps no
// tags of key pairs, and does not tell what a machine does at its shutdown. A plan makes
// nothing there; up does not keep machines that nothing would end, and says why; and
// whatever was begun is proven gone.
func TestMinistackLacksMuchAndNothingIsLeftThere(t *testing.T) {
	b := benchOf(t, "DLWB_MINISTACK", `GATEWAY_PORT=5555 exec "$0"`, "/_ministack/health")
	for range 2 { // it loads what serves a call when that comes first, which may take long
		b.raw("DescribeRegions", "")
	}
	_ = b.within("curl", "-s", "-m", "60", endpoint+"/", "-H", "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/"+b.region+
		"/servicequotas/aws4_request, SignedHeaders=host, Signature=x", "-H", "X-Amz-Target: ServiceQuotasV20190624.GetServiceQuota", "-d", "{}").Run()
	b.write("train.py", "print(1)\n")
	b.write("dlwb.yaml", "name: story\nprovider: ec2\nmachines: {region: us-east-1, instance: g5.xlarge, count: 2, image: ami-0abcdef1234567890, user: ec2-user}\n"+
		"run: {command: train.py}\nlimits: {lifetime: 1h, idle: 30m}\n")

	plan := b.run("plan")
	plan.says(t, "account 000000000000", "2 × g5.xlarge in us-east-1", "which zones offer", "quota: not checked")
	if plan.code != 0 || b.running()+b.left() != 0 {
		t.Fatalf("a plan: exit code %d, %d machines, %d other things\n%s", plan.code, b.running(), b.left(), plan.text)
	}
	up := b.run("up", "--plain")
	up.says(t, "would not end when its lease shuts it down", "not all of EC2", "receipt: everything is gone")
	if up.code == 0 || b.running()+b.left() != 0 {
		t.Errorf("up: exit code %d, %d machines, %d other things\n%s", up.code, b.running(), b.left(), up.text)
	}
	b.killedOnce("two machines", func() bool { return b.running() == 2 }, "up", "--plain")
	down := b.run("down", "--plain")
	down.says(t, "seen terminated", "receipt: everything is gone")
	if down.code != 0 || b.running()+b.left() != 0 {
		t.Errorf("down: exit code %d, %d machines, %d other things\n%s", down.code, b.running(), b.left(), down.text)
	}
}
