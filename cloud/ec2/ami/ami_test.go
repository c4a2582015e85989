package ami

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func TestTheNewestImageIsFoundByNumber(t *testing.T) {
	images := map[string]string{
		"oss-nvidia-driver-gpu-pytorch-2.9-ubuntu-24.04":          "ami-9",
		"oss-nvidia-driver-gpu-pytorch-2.10-ubuntu-22.04":         "ami-10old",
		"oss-nvidia-driver-gpu-pytorch-2.10-ubuntu-24.04":         "ami-10",
		"oss-nvidia-driver-gpu-pytorch-2.11-amazon-linux-2023":    "ami-amazon",
		"base-oss-nvidia-driver-gpu-ubuntu-22.04":                 "ami-base22",
		"base-oss-nvidia-driver-gpu-ubuntu-24.04":                 "ami-base24",
		"oss-nvidia-driver-gpu-tensorflow-2.99-ubuntu-24.04":      "ami-tf",
		"oss-nvidia-driver-gpu-pytorch-2.99-ubuntu-24.04-nightly": "ami-nightly",
	}
	for alias, want := range map[string]string{"pytorch": "ami-10", "pytorch-2.9": "ami-9", "base": "ami-base24", "pytorch-1.0": ""} {
		pattern, err := aliasPattern(alias)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := newest(images, pattern); got != want {
			t.Errorf("%s is %q, not %q", alias, got, want)
		}
	}
	if _, err := aliasPattern("tensorflow"); err == nil {
		t.Error("an image that nobody knows is known")
	}
}

func TestWhoLogsIn(t *testing.T) {
	for name, want := range map[string]string{
		"Deep Learning OSS Nvidia Driver AMI GPU PyTorch 2.12 (Ubuntu 24.04) 20261002":      "ubuntu",
		"Deep Learning OSS Nvidia Driver AMI GPU PyTorch 2.12 (Amazon Linux 2023) 20261002": "ec2-user",
		"al2023-ami-2023.9.20261101.0-kernel-6.12-x86_64":                                   "ec2-user",
		"ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-20261101":                "ubuntu",
	} {
		if got := loginUser(types.Image{Name: aws.String(name)}); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
