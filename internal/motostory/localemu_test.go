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
	b.hasALife("account 000000000000", "AWS would allow ImportKeyPair, CreateSecurityGroup, RunInstances")
}
