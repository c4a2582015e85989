package sagemaker

import (
	"encoding/json"
	"strings"

	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"

	"github.com/dlwb/dlwb/cloud"
)

// statement is one of an IAM policy.
type statement struct {
	Effect   string   `json:"Effect"`
	Action   []string `json:"Action"`
	Resource []string `json:"Resource"`
}

type document struct {
	Version   string      `json:"Version"`
	Statement []statement `json:"Statement"`
}

// need is a right that the role of a job has to have.
type need struct {
	action, resource string
}

// rightsOf are what the role of a job needs, for what a profile asks.
func rightsOf(spec cloud.Spec, partition, region, bucket string) (all []need) {
	m := about.Own[options.Machines](spec.Own)
	s3 := func(bucket, key string, actions ...string) {
		base := "arn:" + partition + ":s3:::" + bucket
		all = append(all, need{"s3:ListBucket", base})
		for _, action := range actions {
			all = append(all, need{action, base + "/" + key + "*"})
		}
	}
	s3(bucket, "dlwb/", "s3:GetObject", "s3:PutObject")
	for _, text := range []string{m.Output, m.Checkpoints} {
		if b, key, err := options.S3(text); err == nil && text != "" {
			s3(b, slashed(key), "s3:GetObject", "s3:PutObject", "s3:DeleteObject")
		}
	}
	for _, text := range m.Channels {
		if c, err := options.ParseChannel(text); err == nil && c.S3 != "" {
			b, key, _ := options.S3(c.S3)
			s3(b, slashed(key), "s3:GetObject")
		}
	}
	logs := "arn:" + partition + ":logs:" + region + ":*:log-group:" + group + "*"
	for _, action := range []string{"logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"} {
		all = append(all, need{action, logs})
	}
	for _, action := range []string{"ecr:GetAuthorizationToken", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ecr:BatchCheckLayerAvailability", "cloudwatch:PutMetricData"} {
		all = append(all, need{action, "*"})
	}
	if m.Subnet != "" {
		for _, action := range []string{"ec2:CreateNetworkInterface", "ec2:CreateNetworkInterfacePermission", "ec2:DeleteNetworkInterface", "ec2:DeleteNetworkInterfacePermission", "ec2:DescribeNetworkInterfaces",
			"ec2:DescribeVpcs", "ec2:DescribeDhcpOptions", "ec2:DescribeSubnets", "ec2:DescribeSecurityGroups"} {
			all = append(all, need{action, "*"})
		}
	}
	if m.RemoteDebug { // the agent in the containers calls Systems Manager with the role
		for _, action := range []string{"ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel", "ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel"} {
			all = append(all, need{action, "*"})
		}
	}
	if m.KMSKey != "" {
		all = append(all, need{"kms:CreateGrant", "*"}, need{"kms:GenerateDataKey", "*"}, need{"kms:Decrypt", "*"})
	}
	return all
}

func slashed(key string) string {
	if key == "" {
		return ""
	}
	return key + "/"
}

// policyOf is the least policy of rights, as JSON: one statement for each resource.
func policyOf(rights []need) string {
	d := document{Version: "2012-10-17"}
	at := map[string]int{}
	seen := map[need]bool{}
	for _, n := range rights {
		if seen[n] {
			continue
		}
		seen[n] = true
		i, is := at[n.resource]
		if !is {
			i = len(d.Statement)
			at[n.resource] = i
			d.Statement = append(d.Statement, statement{Effect: "Allow", Resource: []string{n.resource}})
		}
		d.Statement[i].Action = append(d.Statement[i].Action, n.action)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(d)
	return strings.TrimSpace(b.String())
}
