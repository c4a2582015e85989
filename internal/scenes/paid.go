package scenes

import (
	"fmt"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/ui"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/planning"
)

// Scenes of machines that are paid for.

const listPrices = "AWS Price List, 3 min old"

func paidCosts(nodes int) []cloud.Cost {
	n := float64(nodes)
	return []cloud.Cost{
		{What: fmt.Sprintf("%d × g5.12xlarge, spot", nodes), PerHour: 2.31 * n, Source: "spot price history, 3 min old"},
		{What: fmt.Sprintf("%d GiB of gp3 disk", nodes*100), PerHour: 0.011 * n, Source: listPrices},
		{What: fmt.Sprintf("%d public IPv4 addresses", nodes), PerHour: 0.005 * n, Source: listPrices},
	}
}

func total(costs []cloud.Cost) (sum float64) {
	for _, c := range costs {
		sum += c.PerHour
	}
	return sum
}

// paid is a story of four spot machines whose lease ends after some time.
func paid(ends time.Duration) *Story {
	t := NewStory(4, 4)
	t.Cluster, t.Provider, t.Run = "vision", "ec2", "vision-0314-0926"
	t.Price = total(paidCosts(4))
	t.Wait(100 * time.Minute) // machines that are up for long
	t.Up()
	t.Tell(event.ClusterUp{Provider: "ec2", Region: "us-east-1", Zone: "us-east-1c", Instance: "g5.12xlarge", Spot: true,
		Nodes: t.nodes(), PricePerHour: t.Price, Costs: paidCosts(4), Ends: t.At().Add(ends)})
	t.Launch().Train(0, 0.62)
	for n := range t.Nodes {
		t.Tell(event.LeaseChanged{Node: n, Bound: "lifetime", Ends: t.At().Add(ends)})
	}
	return t
}

func trainEC2(w, h int, theme string) *Stage {
	s := open(w, h, theme, paid(3*time.Hour+12*time.Minute), Output(0.62))
	return s
}

func spotNotice(w, h int, theme string) *Stage {
	t := paid(4*time.Minute + 40*time.Second)
	t.Tell(event.SpotNotice{Node: 2, Action: "terminate", At: t.At().Add(109 * time.Second)})
	return open(w, h, theme, t, Output(0.62))
}

func stopped(w, h int, theme string) *Stage {
	t := paid(6 * time.Hour)
	t.Tell(event.RunEnded{Verdict: event.Stopped, ExitCode: 130, Cause: "somebody asked for it", Rank: -1, Node: -1, Duration: 33})
	t.Wait(20 * time.Second)
	t.Tell(event.ClusterStopped{PricePerHour: paidCosts(4)[1].PerHour, Costs: paidCosts(4)[1:2]}).Wait(5 * time.Hour)
	return open(w, h, theme, t, Output(0.62))
}

func receiptEC2(proven bool) func(int, int, string) *Stage {
	return func(w, h int, theme string) *Stage {
		t := paid(3 * time.Hour)
		t.Tell(event.StepStarted{Step: event.StepDown, Text: "removing the machines"}).Wait(160 * time.Second)
		lived := 104 * time.Minute
		r := event.ReceiptMade{Proven: proven, Lived: lived.Seconds(), Cost: t.Price * lived.Hours()}
		add := func(kind, id, proof string, cost float64) {
			r.Resources = append(r.Resources, cloud.Resource{Kind: kind, ID: id, State: cloud.Gone, Proof: proof, Lived: lived, Cost: cost})
		}
		for i := range 4 {
			add("instance", fmt.Sprintf("i-0b7e41c09d2fa61%02x", 0x2a+i), "seen terminated, and no more listed for 2 min", 4.03)
		}
		add("volume", "vol-04c1f0a77d2be9135", "DeleteOnTermination, and not found after it", 0.08)
		add("security-group", "sg-0f3d91a6c5b7e2480", "deleted, and not found when looked for again", 0)
		add("placement-group", "dlwb-vision-4c1f0a77d2be", "deleted, and not found when looked for again", 0)
		add("key-pair", "key-0d2be9135f04c1f0a", "deleted, and not found when looked for again", 0)
		down := event.StepEnded{Step: event.StepDown, OK: true, Duration: 160, Text: "proven gone"}
		if !proven {
			r.Resources[1].State = cloud.Alive
			r.Resources[1].Proof = "still running 2 min after TerminateInstances was accepted; by hand: aws ec2 terminate-instances --region us-east-1 --instance-ids i-0b7e41c09d2fa612b"
			r.Resources[5].State = cloud.Unknown
			r.Resources[5].Proof = "in use; by hand: aws ec2 delete-security-group --region us-east-1 --group-id sg-0f3d91a6c5b7e2480"
			down.OK, down.Text = false, "not everything is proven gone"
			down.Failure = &event.Fault{What: "tear down vision", Node: -1, Why: "2 of 8 resources are not proven gone", Next: "dlwb down vision; it goes on where it was left"}
		}
		t.Tell(down).Tell(r)
		return open(w, h, theme, t, Output(0.62))
	}
}

func unresolvedHome(w, h int, theme string) *Stage {
	return NewStage(w, h, ui.Options{Theme: theme}, func(s *Stage) {
		s.HomeIs = HomeFull()
		c := s.HomeIs.Clusters[2]
		c.Name, c.PricePerHour, c.Spent, c.Instance = "asr", 3.06, 12.3, "g6.4xlarge"
		c.Ends, c.Next = time.Time{}, nil
		s.HomeIs.Clusters = append(s.HomeIs.Clusters, c)
	}).Press("?")
}

// PlanEC2 is the plan of four spot machines.
func PlanEC2() *ui.PlanView {
	offers := Offers().Offers
	return &ui.PlanView{Name: "vision", Path: "~/vision/dlwb.yaml", Provider: "ec2", Nodes: 4, Engine: "auto", WorldSize: 16,
		Environment: "system", Code: ui.CodePlan{Dir: "~/vision", Files: 31, Bytes: 212 << 10},
		Offer: &offers[2], PricePerHour: total(paidCosts(4)), Costs: paidCosts(4),
		Most: 20, MostWhy: "limits.budget: the machines shut themselves down when it is spent, after 2h09m at $9.30/h",
		Limits: []string{"lifetime: 8h after their start the machines shut themselves down", "idle: so they do after 30m without a run, a login or work on a GPU",
			"budget: so they do when $20.00 may be spent"}, Results: []string{"checkpoints/"},
		Findings: []cloud.Finding{
			{OK: true, What: "credentials", Text: "arn:aws:iam::123456789012:user/ada, from the profile default"},
			{OK: true, What: "permissions", Text: "all 23 calls that it needs are allowed"},
			{OK: true, What: "zones", Text: "g5.12xlarge is offered in us-east-1a, b, c, d, f"},
			{OK: false, What: "quota", Text: "\"All G and VT Spot Instance Requests\" (L-3819A6DF) is 64 vCPUs in us-east-1; 4 × g5.12xlarge need 192",
				Next: "aws service-quotas request-service-quota-increase --region us-east-1 --service-code ec2 --quota-code L-3819A6DF --desired-value 192"},
			{OK: true, What: "image", Text: "ami-0c9fb5d338f1eec43, Deep Learning OSS Nvidia Driver AMI GPU PyTorch 2.9 (Ubuntu 24.04)"},
			{OK: true, What: "price", Text: "known: spot price history and AWS Price List of today"}},
		Launches: []planning.Launch{
			{When: "PyTorch is found on node0", Engine: "torchrun", WorldSize: 16, Commands: ranksOf(4, 4, func(node int) string {
				return fmt.Sprintf("PYTHON -m torch.distributed.run --nnodes=4 --nproc_per_node=4 --node_rank=%d --master_addr=NODE0 --master_port=PORT train.py", node)
			})},
			{When: "PyTorch is not found on node0", Engine: "plain", WorldSize: 16, Commands: ranksOf(4, 4, func(int) string { return "PYTHON train.py" })}},
		Open: []planning.Placeholder{{Name: "PYTHON", Is: "the interpreter that the environment has on node0"},
			{Name: "NODE0", Is: "the address at which the other nodes reach node0"}, {Name: "PORT", Is: "a port of node0 that is free at the launch"}},
	}
}

// ranksOf are the ranks of nodes that each have so many.
func ranksOf(nodes, each int, command func(node int) string) (all []event.RankInfo) {
	for r := range nodes * each {
		all = append(all, event.RankInfo{Rank: r, LocalRank: r % each, Node: r / each, Command: command(r / each)})
	}
	return all
}

func planEC2(w, h int, theme string) *Stage {
	return NewStage(w, h, ui.Options{Theme: theme}, func(s *Stage) {
		s.HomeIs = event.Home{Profiles: []event.ProfileInfo{{Name: "vision", Path: "~/vision/dlwb.yaml", Provider: "ec2"}}}
		s.PlanIs = PlanEC2()
	}).Press("enter")
}
