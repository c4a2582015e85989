// Package policy is what dlwb must be allowed to call in an AWS account: the least
// IAM policy, and what an administrator grants who lacks a part of it.
package policy

import (
	"encoding/json"
	"slices"
	"strings"
)

// The actions that dlwb calls, by what they can do. Whatever ends or changes
// something is allowed only where dlwb's tag is.
var (
	lookActions = []string{
		"ec2:DescribeAddresses", "ec2:DescribeAvailabilityZones", "ec2:DescribeCapacityReservations", "ec2:DescribeImages", "ec2:DescribeInstanceAttribute",
		"ec2:DescribeInstanceConnectEndpoints", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes", "ec2:DescribeInstances", "ec2:DescribeKeyPairs",
		"ec2:DescribeNetworkInterfaces", "ec2:DescribePlacementGroups", "ec2:DescribeRegions", "ec2:DescribeRouteTables", "ec2:DescribeSecurityGroups",
		"ec2:DescribeSpotInstanceRequests", "ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets", "ec2:DescribeVolumes", "ec2:DescribeVpcs",
		"ec2:GetConsoleOutput", "ec2:GetSpotPlacementScores",
		"pricing:GetProducts",
		"servicequotas:GetAWSDefaultServiceQuota", "servicequotas:GetServiceQuota",
	}
	imageActions = []string{"ssm:GetParameter", "ssm:GetParametersByPath"}
	makeActions  = []string{"ec2:CreatePlacementGroup", "ec2:CreateSecurityGroup", "ec2:ImportKeyPair", "ec2:RunInstances"}
	endActions   = []string{
		"ec2:AttachVolume", "ec2:AuthorizeSecurityGroupEgress", "ec2:AuthorizeSecurityGroupIngress", "ec2:CancelSpotInstanceRequests",
		"ec2:DeleteKeyPair", "ec2:DeleteNetworkInterface", "ec2:DeletePlacementGroup", "ec2:DeleteSecurityGroup",
		"ec2:DeleteVolume", "ec2:ModifyInstanceAttribute", "ec2:ReleaseAddress", "ec2:RevokeSecurityGroupEgress",
		"ec2:RevokeSecurityGroupIngress", "ec2:StartInstances", "ec2:StopInstances", "ec2:TerminateInstances",
	}
)

// Tag is on everything that dlwb makes, and names the life that it belongs to.
const Tag = "dlwb:life"

// Statement is one of a policy.
type Statement struct {
	Sid       string                         `json:"Sid,omitempty"`
	Effect    string                         `json:"Effect"`
	Action    []string                       `json:"Action"`
	Resource  []string                       `json:"Resource"`
	Condition map[string]map[string][]string `json:"Condition,omitempty"`
}

// Document is a policy as IAM has it.
type Document struct {
	Version   string      `json:"Version"`
	Statement []Statement `json:"Statement"`
}

// Least is the least IAM policy with which dlwb can make clusters and remove
// them, as JSON. With regions, nothing can be made or ended elsewhere. role is
// the ARN of the role that nodes may be given for results in S3; empty: none.
func Least(role string, regions ...string) string {
	made := map[string]map[string][]string{"StringEquals": {
		"ec2:CreateAction": {"CreatePlacementGroup", "CreateSecurityGroup", "ImportKeyPair", "RunInstances"}}}
	ours := map[string]map[string][]string{"StringLike": {"aws:ResourceTag/" + Tag: {"*"}}}
	all := []Statement{
		allow("Look", lookActions, nil),
		{"FindImages", "Allow", imageActions, []string{"arn:aws:ssm:*::parameter/aws/service/*"}, nil},
		allow("Make", makeActions, within(nil, regions)),
		allow("TagWhatIsMade", []string{"ec2:CreateTags"}, within(made, regions)),
		allow("ChangeAndEndWhatIsTagged", endActions, within(ours, regions)),
		// To attach a volume takes a right to it and to the machine, which is dlwb's own.
		{"AttachYourVolumes", "Allow", []string{"ec2:AttachVolume"}, []string{"arn:aws:ec2:*:*:volume/*"}, nil},
		{"SpotForTheFirstTime", "Allow", []string{"iam:CreateServiceLinkedRole"},
			[]string{"arn:aws:iam::*:role/aws-service-role/spot.amazonaws.com/*"}, nil},
	}
	if role != "" {
		all = append(all, Statement{"GiveNodesTheirRole", "Allow", []string{"iam:PassRole"}, []string{role},
			map[string]map[string][]string{"StringEquals": {"iam:PassedToService": {"ec2.amazonaws.com"}}}})
	}
	b, _ := json.MarshalIndent(Document{"2012-10-17", all}, "", "  ") // strings and slices
	return string(b)
}

func allow(sid string, actions []string, condition map[string]map[string][]string) Statement {
	return Statement{sid, "Allow", actions, []string{"*"}, condition}
}

// within adds the regions to a condition.
func within(condition map[string]map[string][]string, regions []string) map[string]map[string][]string {
	if len(regions) == 0 {
		return condition
	}
	if condition == nil {
		condition = map[string]map[string][]string{}
	}
	if condition["StringEquals"] == nil {
		condition["StringEquals"] = map[string][]string{}
	}
	condition["StringEquals"]["aws:RequestedRegion"] = regions
	return condition
}

// Grant is the command by which an administrator gives an identity the
// permissions that it lacks.
func Grant(arn string, missing []string) string {
	actions := slices.Compact(slices.Sorted(slices.Values(missing)))
	b, _ := json.Marshal(Document{"2012-10-17", []Statement{allow("", actions, nil)}})
	document := "'" + string(b) + "'"
	kind, rest, _ := strings.Cut(arn[strings.LastIndex(arn, ":")+1:], "/")
	name := rest[strings.LastIndex(rest, "/")+1:]
	switch {
	case kind == "user":
		return "an administrator runs: aws iam put-user-policy --user-name " + name + " --policy-name dlwb --policy-document " + document
	case kind == "assumed-role" && strings.HasPrefix(rest, "AWSReservedSSO_"):
		return "an administrator adds to the permission set in IAM Identity Center: " + string(b)
	case kind == "assumed-role":
		name, _, _ = strings.Cut(rest, "/")
		return "an administrator runs: aws iam put-role-policy --role-name " + name + " --policy-name dlwb --policy-document " + document
	}
	return "an administrator allows: " + string(b)
}
