//go:build unix

package ecs

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/dlwb/dlwb/cloud"
)

// blueprintServices are those of the blueprint's Terraform, by their commands.
var blueprintServices = map[string]string{
	"distributed_ml_training_head_service":   "ulimit -n 65536; ray start --head --dashboard-host=0.0.0.0 --metrics-export-port=8080 --num-cpus=0 --memory=10737418240 --block",
	"distributed_ml_training_worker_service": "ulimit -n 65536; ray start --block --num-cpus=3 --num-gpus=1 --address=head.default.core-infra.local:6379 --metrics-export-port=8080 --memory=15032385536",
}

// Another stand-in for AWS shows the blueprint's services, beside one that has no Ray,
// as dlwb reads them; a job in a cluster that somebody has removed is over.
func TestMotoShowsTheServicesOfTheBlueprint(t *testing.T) {
	moto(t)
	p := New()
	d, err := p.doors.Open(t.Context(), "us-west-2")
	if err != nil {
		t.Fatal(err)
	}
	const name = "ecs-demo-distributed-ml-training"
	if _, err := d.ecs.CreateCluster(t.Context(), &awsecs.CreateClusterInput{ClusterName: aws.String(name)}); err != nil {
		t.Fatal(err)
	}
	services := map[string]string{"metrics": "prometheus --web.listen-address=:9090"}
	for service, command := range blueprintServices {
		services[service] = command
	}
	for service, command := range services {
		c := ecstypes.ContainerDefinition{Name: aws.String("c"), Image: aws.String("docker.io/rayproject/ray-ml:2.7.1-gpu"), Memory: aws.Int32(1024), Command: []string{"/bin/bash", "-lc", "--", command}}
		if strings.Contains(command, "--num-gpus") {
			c.ResourceRequirements = []ecstypes.ResourceRequirement{{Type: ecstypes.ResourceTypeGpu, Value: aws.String("1")}}
		}
		def, err := d.ecs.RegisterTaskDefinition(t.Context(), &awsecs.RegisterTaskDefinitionInput{Family: aws.String(service), NetworkMode: ecstypes.NetworkModeAwsvpc,
			TaskRoleArn: aws.String("arn:aws:iam::123456789012:role/taskRole"), ContainerDefinitions: []ecstypes.ContainerDefinition{c}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.ecs.CreateService(t.Context(), &awsecs.CreateServiceInput{Cluster: aws.String(name), ServiceName: aws.String(service), DesiredCount: aws.Int32(2),
			TaskDefinition: def.TaskDefinition.TaskDefinitionArn}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := d.theirs(t.Context(), name)
	want := theirs{name, "distributed_ml_training_head_service", 2, 1, "docker.io/rayproject/ray-ml:2.7.1-gpu", "arn:aws:iam::123456789012:role/taskRole"}
	if err != nil || got != want {
		t.Errorf("%+v %v", got, err)
	}
	ledger := &kept{}
	life := cloud.Life{Name: "jobs", ID: "0123456789ab", Began: time.Now(), Dir: t.TempDir(), Ledger: ledger}
	account, err := d.account(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := ref{Region: "us-west-2", Account: account, Cluster: "removed", Name: "run-1", Reach: reachDirect, There: true, Output: "s3://ml-lab/run-1"}
	if err := ledger.Intend(kindJob, token(kindJob, r.Name), detail{Region: r.Region, Account: account, Name: r.Name, Job: &r}); err != nil {
		t.Fatal(err)
	}
	receipt, err := p.Down(t.Context(), life, func(_ int, text string) { t.Log(text) })
	if err != nil || !receipt.Proven() || len(receipt.Resources) != 1 || !strings.Contains(receipt.Resources[0].Proof, "is no more") || !strings.Contains(receipt.Resources[0].Proof, r.Output) {
		t.Errorf("%v: %+v", err, receipt)
	}
}
