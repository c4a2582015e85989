//go:build unix

package fakeecs

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
)

// BlueprintCluster is the name of the ECS cluster of AWS's blueprint.
const BlueprintCluster = "ecs-demo-distributed-ml-training"

var subnetID = regexp.MustCompile(`<subnetId>(subnet-[0-9a-f]+)</subnetId>`)

// Blueprint makes what the Terraform of AWS's blueprint makes: names, capacity
// providers, task definitions with an address of their own, commands. It is no work of
// dlwb's.
func (f *Fake) Blueprint(workers int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	must := func(_ any, e *Error) {
		if e != nil {
			panic(e.Code + ": " + e.Says)
		}
	}
	must(f.createCluster(m{"clusterName": BlueprintCluster}))
	image := imageID.FindStringSubmatch(f.ec2("DescribeImages", url.Values{"Filter.1.Name": {"architecture"}, "Filter.1.Value.1": {"x86_64"}}))
	subnet := subnetID.FindStringSubmatch(f.ec2("DescribeSubnets", url.Values{}))
	var providers []any
	for part, n := range map[string]int{"head": 1, "workers": workers} {
		name, provider := BlueprintCluster+"-"+part, "distributed_ml_training_"+part
		data := base64.StdEncoding.EncodeToString([]byte("#!/bin/bash\ncat <<'EOF' >> /etc/ecs/ecs.config\nECS_CLUSTER=" + BlueprintCluster + "\nEOF\n"))
		must(f.launchTemplates(request{name: "CreateLaunchTemplate", form: url.Values{"LaunchTemplateName": {name}, "LaunchTemplateData.ImageId": {image[1]},
			"LaunchTemplateData.InstanceType": {"m5.xlarge"}, "LaunchTemplateData.UserData": {data}, "LaunchTemplateData.NetworkInterface.1.DeviceIndex": {"0"},
			"LaunchTemplateData.MetadataOptions.HttpTokens": {"required"}}}))
		size := fmt.Sprint(n)
		must(f.scaling(request{name: "CreateAutoScalingGroup", form: url.Values{"AutoScalingGroupName": {name}, "LaunchTemplate.LaunchTemplateId": {f.templates[name].id},
			"VPCZoneIdentifier": {subnet[1]}, "MinSize": {size}, "MaxSize": {size}, "DesiredCapacity": {size}}}))
		must(f.createProvider(m{"name": provider, "autoScalingGroupProvider": m{"autoScalingGroupArn": arn("autoscaling", "autoScalingGroup:x:autoScalingGroupName/"+name)}}))
		providers = append(providers, provider)
	}
	must(f.putProviders(m{"cluster": BlueprintCluster, "capacityProviders": providers}))
	for _, s := range []struct {
		service, provider, container, command string
		want                                  int
	}{
		{"distributed_ml_training_head_service", "distributed_ml_training_head", "ray_head",
			"ulimit -n 65536; ray start --head --dashboard-host=0.0.0.0 --metrics-export-port=8080 --num-cpus=0 --memory=10737418240 --block", 1},
		{"distributed_ml_training_worker_service", "distributed_ml_training_workers", "ray_work",
			"ulimit -n 65536; ray start --block --num-cpus=3 --num-gpus=1 --address=head.default.core-infra.local:6379 --metrics-export-port=8080 --memory=15032385536", workers},
	} {
		c := m{"name": s.container, "image": "docker.io/rayproject/ray-ml:2.7.1.artur.c9f4c6-py38", "command": []any{"/bin/bash", "-lc", "--", s.command}}
		if s.container == "ray_work" {
			c["image"] = str(c, "image") + "-gpu"
			c["resourceRequirements"] = []any{m{"type": "GPU", "value": "1"}}
		}
		must(f.register(m{"family": s.service, "networkMode": "awsvpc", "taskRoleArn": "arn:aws:iam::123456789012:role/taskRole", "containerDefinitions": []any{c}}))
		must(f.createService(m{"cluster": BlueprintCluster, "serviceName": s.service, "taskDefinition": f.tasks[s.service][0].arn, "desiredCount": float64(s.want),
			"capacityProviderStrategy": []any{m{"capacityProvider": s.provider, "weight": 1.0, "base": 1.0}}}))
	}
}
