// Package options describes the provider of Ray clusters on Amazon ECS.
package options

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/internal/nearword"
)

// Provider is the description.
var Provider = about.Provider{
	Name: "ecs",
	Doc:  "a Ray cluster on Amazon ECS: machines of auto scaling groups, containers of your image, each run a Ray job; needs AWS credentials and an instance profile",
	Pays: "paid machines of EC2 in an ECS cluster, with your AWS credentials",
	// The auto scaling groups have a scheduled action that ends their machines.
	Traits: about.Traits{Sealed: true, KeptInS3: true, RanksOnly: true, Deadline: true, Budgeted: true, InTurn: true},
	// The script is the driver, beside the head of the Ray that is there.
	Carries: []string{"ray"}, Clusters: []string{"ray"},
	Keys:  []string{"machines.instance", "machines.image", "machines.disk", "machines.region", "machines.spot"},
	Needs: []string{"machines.instance", "machines.image"}, Options: table,
	New:   func() any { return new(Machines) },
	Check: check, Effects: effects,
	Regions: []about.Region{
		{Name: "us-east-1", Place: "N. Virginia"}, {Name: "us-east-2", Place: "Ohio"}, {Name: "us-west-2", Place: "Oregon"},
		{Name: "eu-west-1", Place: "Ireland"}, {Name: "eu-central-1", Place: "Frankfurt"}, {Name: "ap-northeast-1", Place: "Tokyo"},
	},
}

// Machines are the options that only this provider has.
type Machines struct {
	Head     string // the type of the machine of Ray's head
	Profile  string // the instance profile of the machines
	TaskRole string // the IAM role of the containers
	// ExecutionRole is the IAM role by which ECS itself reads the token of Ray.
	ExecutionRole string
	// Cluster is an ECS cluster that is there, with a Ray in its services.
	Cluster    string
	Subnet     string
	Reach      string
	Repository string // of ECR, for the image that is built from a Dockerfile
	Shm        int    // GiB of shared memory of a worker's container
	Tags       map[string]string
}

// The words of machines.reach.
const (
	SSM    = "ssm"
	Direct = "private"
)

// DefaultHead is the type of the head, as in AWS's blueprint.
const DefaultHead = "m5.xlarge"

// DefaultProfile is the instance profile that the console of ECS makes.
const DefaultProfile = "ecsInstanceRole"

var reaches = []string{SSM, Direct}

var table = []about.Option{
	{Key: "machines.head_instance", Also: []string{"head", "head_type"},
		Doc: "The type of one machine more, on demand, which leads the others and on which no rank trains: it has Ray's head and the driver of the job, or on EC2 the chief of TensorFlow's parameter servers, too. Without it: on EC2 none, on ECS `" + DefaultHead + "`.", Example: "m5.2xlarge",
		Place: about.In(func(m *Machines) *string { return &m.Head })},
	{Key: "machines.instance_profile", Asked: true, Also: []string{"instance_role"},
		Doc: "The IAM instance profile of the machines, with AmazonEC2ContainerServiceforEC2Role and, for `reach: ssm`, AmazonSSMManagedInstanceCore; without it, `" + DefaultProfile + "`.", Example: DefaultProfile,
		Place: about.In(func(m *Machines) *string { return &m.Profile })},
	{Key: "machines.task_role", Also: []string{"role", "task_role_arn"},
		Doc: "The IAM role of the containers, by ARN, by which scripts use S3; without it they have what the machine has.", Example: "arn:aws:iam::123456789012:role/training",
		Place: about.In(func(m *Machines) *string { return &m.TaskRole })},
	{Key: "machines.task_execution_role", Also: []string{"execution_role_arn"},
		Doc: "The IAM role, by ARN, by which ECS reads the token of Ray from an encrypted parameter of Systems Manager (`ssm:GetParameters`); without it the token stands in the task definitions.", Example: "arn:aws:iam::123456789012:role/ecsTaskExecutionRole",
		Place: about.In(func(m *Machines) *string { return &m.ExecutionRole })},
	{Key: "machines.cluster", Also: []string{"cluster_name", "ecs_cluster"},
		Doc: "The name of an ECS cluster that is there, whose services run Ray's head and workers, such as the blueprint's Terraform makes: dlwb hands its job to that Ray, with `engine: ray`, makes and removes nothing else, and counts no cost; `machines.instance` and `machines.image` are what its workers have.", Example: "ecs-demo-distributed-ml-training",
		Place: about.In(func(m *Machines) *string { return &m.Cluster })},
	{Key: "machines.subnet", Asked: true, Also: []string{"subnets"},
		Doc: "The subnet of the machines, by id; without it, the one of the default VPC, in a zone that has both types, with the most free addresses.", Example: "subnet-0123456789abcdef0",
		Place: about.In(func(m *Machines) *string { return &m.Subnet })},
	{Key: "machines.reach", Asked: true, Also: []string{"connect", "access"},
		Doc: "The way to the head: `ssm` (Systems Manager; needs session-manager-plugin here, and no port is open), or `private` (its private address, from within the VPC or by a VPN); without it, `ssm`.", Example: SSM,
		Place: about.In(func(m *Machines) *string { return &m.Reach })},
	{Key: "machines.shared_memory", Kind: about.Count, Min: 0, Max: 1024, Default: "0", Also: []string{"shm", "shm_size"},
		Doc: "The shared memory of each worker's container in GiB, for data loaders and Ray's object store; 0 means 10.", Example: "20",
		Place: about.In(func(m *Machines) *int { return &m.Shm })},
	{Key: "machines.tags", Kind: about.Pairs, Also: []string{"labels"}, Doc: "Tags for everything that is made, besides dlwb's own.", Example: "{project: charlm}",
		Place: about.In(func(m *Machines) *map[string]string { return &m.Tags })},
	about.Repository(func(m *Machines) *string { return &m.Repository }),
}

// check tells what is wrong with the options.
func check(own any) (faults []about.Fault) {
	m := about.Own[Machines](own)
	add := func(key, why, next string) {
		faults = append(faults, about.Fault{Key: "machines." + key, Why: why, Next: next})
	}
	if m.Reach != "" && !slices.Contains(reaches, m.Reach) {
		why := fmt.Sprintf("there is no %q", m.Reach)
		if near := nearword.Nearest(m.Reach, reaches); near != "" {
			why += ": did you mean " + near + "?"
		}
		add("reach", why, strings.Join(reaches, ", "))
	}
	for key, role := range map[string]string{"task_role": m.TaskRole, "task_execution_role": m.ExecutionRole} {
		if role != "" && !strings.HasPrefix(role, "arn:") {
			add(key, fmt.Sprintf("%q is no ARN", role), "aws iam get-role --role-name NAME --query Role.Arn")
		}
	}
	if m.Subnet != "" && !strings.HasPrefix(m.Subnet, "subnet-") {
		add("subnet", fmt.Sprintf("%q is no id of a subnet", m.Subnet), "aws ec2 describe-subnets --query \"Subnets[].[SubnetId,Tags]\"")
	}
	for _, key := range slices.Sorted(maps.Keys(m.Tags)) {
		if strings.HasPrefix(key, "aws:") || strings.HasPrefix(key, "dlwb:") || len(key) > 128 || len(m.Tags[key]) > 256 {
			add("tags", "AWS and dlwb have the keys that begin with aws: and dlwb:, and a key has 128 characters at most, its value 256", "another key than "+key)
		}
	}
	return faults
}

func effects(own any) (all []about.Effect) {
	m := about.Own[Machines](own)
	add := func(kind string, unusual bool, format string, args ...any) {
		all = append(all, about.Effect{Kind: kind, Unusual: unusual, Text: fmt.Sprintf(format, args...)})
	}
	head := m.Head
	if head == "" {
		head = DefaultHead
	}
	if m.Cluster != "" {
		add(about.Runs, true, "in the containers of the ECS cluster %s, with the rights that they have; its machines are not dlwb's, and cost whoever made them", m.Cluster)
	} else {
		add(about.Pays, false, "one %s more, for Ray's head", head)
	}
	add(about.Sends, false, "the code, and the values of run.env, to the head of the Ray cluster")
	all = append(all, about.Builds(m.Repository)...)
	if m.Profile != "" && m.Profile != DefaultProfile {
		add(about.Runs, true, "on machines that have the rights of the instance profile %s", m.Profile)
	}
	if m.TaskRole != "" {
		add(about.Runs, true, "in containers that have the rights of the IAM role %s", m.TaskRole)
	}
	return all
}
