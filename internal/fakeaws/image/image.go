// Package image is the public images of a region: AMIs and their parameters in SSM.
package image

import (
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// AMI is an image.
type AMI struct {
	ID, Name, Arch, Owner, Alias, Root string
	Description                        string
	SizeGB                             int // of the root disk's snapshot
	Made                               time.Time
	Parameter                          string // SSM's name of it; empty: it is not the newest
	Deprecated                         bool
}

// The accounts that publish images.
const (
	amazonImages    = "898082745236"
	canonicalImages = "099720109477"
)

// In are the public images of a region: Deep Learning AMIs of now and of
// some time ago, and a plain Ubuntu.
func In(region string) []AMI {
	var out []AMI
	made := time.Date(2026, 10, 2, 7, 11, 12, 0, time.UTC)
	dl := func(arch, param, name, root string, size int) {
		for back := range 2 {
			at := made.AddDate(0, -6*back, 0)
			i := AMI{Name: name + " " + at.Format("20060102"), Arch: arch, Owner: amazonImages, Alias: "amazon", Root: root,
				Description: "Supported EC2 instances: G4dn, G5, G6, Gr6, G6e, P4, P4de, P5, P5e, P5en, P6-B200.",
				SizeGB:      size, Made: at, Deprecated: back > 0}
			if back == 0 {
				i.Parameter = "/aws/service/deeplearning/ami/" + arch + "/" + param + "/latest/ami-id"
			}
			i.ID = wire.FixedID("ami", region+i.Name+arch)
			out = append(out, i)
		}
	}
	for _, arch := range []string{"x86_64", "arm64"} {
		prefix := "Deep Learning "
		if arch == "arm64" {
			prefix = "Deep Learning ARM64 "
		}
		for _, ubuntu := range []string{"22.04", "24.04"} {
			dl(arch, "base-oss-nvidia-driver-gpu-ubuntu-"+ubuntu, prefix+"Base OSS Nvidia Driver GPU AMI (Ubuntu "+ubuntu+")", "/dev/sda1", 65)
		}
		dl(arch, "base-oss-nvidia-driver-gpu-amazon-linux-2023", prefix+"Base OSS Nvidia Driver GPU AMI (Amazon Linux 2023)", "/dev/xvda", 65)
		dl(arch, "oss-nvidia-driver-gpu-pytorch-2.7-ubuntu-22.04", prefix+"OSS Nvidia Driver AMI GPU PyTorch 2.7 (Ubuntu 22.04)", "/dev/sda1", 90)
		for _, torch := range []string{"2.8", "2.9", "2.10", "2.11", "2.12"} {
			dl(arch, "oss-nvidia-driver-gpu-pytorch-"+torch+"-ubuntu-24.04",
				prefix+"OSS Nvidia Driver AMI GPU PyTorch "+torch+" (Ubuntu 24.04)", "/dev/sda1", 90)
		}
		dl(arch, "oss-nvidia-driver-gpu-pytorch-2.11-amazon-linux-2023",
			prefix+"OSS Nvidia Driver AMI GPU PyTorch 2.11 (Amazon Linux 2023)", "/dev/xvda", 90)
		cpu := map[string]string{"x86_64": "amd64", "arm64": "arm64"}[arch]
		out = append(out, AMI{ID: wire.FixedID("ami", region+"ubuntu"+arch), Arch: arch, Owner: canonicalImages, Root: "/dev/sda1", SizeGB: 8, Made: made,
			Name:        "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-" + cpu + "-server-20261002",
			Description: "Canonical, Ubuntu, 24.04, " + cpu + " noble image",
			Parameter:   "/aws/service/canonical/ubuntu/server/24.04/stable/current/" + cpu + "/hvm/ebs-gp3/ami-id"})
	}
	return out
}

// Snapshot is the id of the root disk's snapshot.
func (i AMI) Snapshot() string { return wire.FixedID("snap", i.ID) }

// XML is an image in the answer of DescribeImages.
type XML struct {
	ID          string            `xml:"imageId"`
	Location    string            `xml:"imageLocation"`
	State       string            `xml:"imageState"`
	Owner       string            `xml:"imageOwnerId"`
	Alias       string            `xml:"imageOwnerAlias,omitempty"`
	Created     string            `xml:"creationDate"`
	Deprecation string            `xml:"deprecationTime"`
	Public      bool              `xml:"isPublic"`
	Arch        string            `xml:"architecture"`
	Type        string            `xml:"imageType"`
	Name        string            `xml:"name"`
	Description string            `xml:"description"`
	Platform    string            `xml:"platformDetails"`
	RootType    string            `xml:"rootDeviceType"`
	Root        string            `xml:"rootDeviceName"`
	Disks       wire.Set[imgDisk] `xml:"blockDeviceMapping"`
	Virtual     string            `xml:"virtualizationType"`
	Hypervisor  string            `xml:"hypervisor"`
	ENA         bool              `xml:"enaSupport"`
}

type imgDisk struct {
	Device   string `xml:"deviceName"`
	Snapshot string `xml:"ebs>snapshotId"`
	Size     int    `xml:"ebs>volumeSize"`
	Type     string `xml:"ebs>volumeType"`
	Delete   bool   `xml:"ebs>deleteOnTermination"`
	Crypt    bool   `xml:"ebs>encrypted"`
}

// XML is the image as DescribeImages shows it.
func (i AMI) XML() XML {
	return XML{ID: i.ID, Location: "amazon/" + i.Name, State: "available", Owner: i.Owner, Alias: i.Alias, Created: wire.Time(i.Made),
		Deprecation: wire.Time(i.Made.AddDate(2, 0, 0)), Public: true, Arch: i.Arch, Type: "machine", Name: i.Name, Description: i.Description,
		Platform: "Linux/UNIX", RootType: "ebs", Root: i.Root, Virtual: "hvm", Hypervisor: "xen", ENA: true,
		Disks: wire.SetOf([]imgDisk{{i.Root, i.Snapshot(), i.SizeGB, "gp3", true, false}})}
}
