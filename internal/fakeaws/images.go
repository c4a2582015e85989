package fakeaws

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// image is an AMI.
type image struct {
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

// imagesOf are the public images of a region: Deep Learning AMIs of now and of
// some time ago, and a plain Ubuntu.
func imagesOf(region string) []image {
	var out []image
	made := time.Date(2026, 10, 2, 7, 11, 12, 0, time.UTC)
	dl := func(arch, param, name, root string, size int) {
		for back := range 2 {
			at := made.AddDate(0, -6*back, 0)
			i := image{Name: name + " " + at.Format("20060102"), Arch: arch, Owner: amazonImages, Alias: "amazon", Root: root,
				Description: "Supported EC2 instances: G4dn, G5, G6, Gr6, G6e, P4, P4de, P5, P5e, P5en, P6-B200.",
				SizeGB:      size, Made: at, Deprecated: back > 0}
			if back == 0 {
				i.Parameter = "/aws/service/deeplearning/ami/" + arch + "/" + param + "/latest/ami-id"
			}
			i.ID = fixedID("ami", region+i.Name+arch)
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
		out = append(out, image{ID: fixedID("ami", region+"ubuntu"+arch), Arch: arch, Owner: canonicalImages, Root: "/dev/sda1", SizeGB: 8, Made: made,
			Name:        "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-" + cpu + "-server-20261002",
			Description: "Canonical, Ubuntu, 24.04, " + cpu + " noble image",
			Parameter:   "/aws/service/canonical/ubuntu/server/24.04/stable/current/" + cpu + "/hvm/ebs-gp3/ami-id"})
	}
	return out
}

func (i image) snapshot() string { return fixedID("snap", i.ID) }

var wellFormed = regexp.MustCompile(`^[a-z]+-([0-9a-f]{8}|[0-9a-f]{17})$`)

// wellFormedID reports whether an id can be one of its kind.
func wellFormedID(prefix, id string) bool {
	return strings.HasPrefix(id, prefix+"-") && wellFormed.MatchString(id)
}

// image finds an image by id, or by "resolve:ssm:" and a parameter's name.
func (r *region) image(id string) (image, error) {
	if name, ok := strings.CutPrefix(id, "resolve:ssm:"); ok {
		i := slices.IndexFunc(r.images, func(i image) bool { return i.Parameter == name })
		if i < 0 {
			return image{}, bad("InvalidParameterValue", "The parameter '%s' does not exist", name)
		}
		return r.images[i], nil
	}
	if !wellFormedID("ami", id) {
		return image{}, bad("InvalidAMIID.Malformed", "Invalid id: \"%s\" (expecting \"ami-...\")", id)
	}
	i := slices.IndexFunc(r.images, func(i image) bool { return i.ID == id })
	if i < 0 {
		return image{}, bad("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
	}
	return r.images[i], nil
}

type imageXML struct {
	ID          string       `xml:"imageId"`
	Location    string       `xml:"imageLocation"`
	State       string       `xml:"imageState"`
	Owner       string       `xml:"imageOwnerId"`
	Alias       string       `xml:"imageOwnerAlias,omitempty"`
	Created     string       `xml:"creationDate"`
	Deprecation string       `xml:"deprecationTime"`
	Public      bool         `xml:"isPublic"`
	Arch        string       `xml:"architecture"`
	Type        string       `xml:"imageType"`
	Name        string       `xml:"name"`
	Description string       `xml:"description"`
	Platform    string       `xml:"platformDetails"`
	RootType    string       `xml:"rootDeviceType"`
	Root        string       `xml:"rootDeviceName"`
	Disks       set[imgDisk] `xml:"blockDeviceMapping"`
	Virtual     string       `xml:"virtualizationType"`
	Hypervisor  string       `xml:"hypervisor"`
	ENA         bool         `xml:"enaSupport"`
}

type imgDisk struct {
	Device   string `xml:"deviceName"`
	Snapshot string `xml:"ebs>snapshotId"`
	Size     int    `xml:"ebs>volumeSize"`
	Type     string `xml:"ebs>volumeType"`
	Delete   bool   `xml:"ebs>deleteOnTermination"`
	Crypt    bool   `xml:"ebs>encrypted"`
}

// isoTime is how AWS writes a time.
func isoTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func (i image) xml() imageXML {
	return imageXML{ID: i.ID, Location: "amazon/" + i.Name, State: "available", Owner: i.Owner, Alias: i.Alias, Created: isoTime(i.Made),
		Deprecation: isoTime(i.Made.AddDate(2, 0, 0)), Public: true, Arch: i.Arch, Type: "machine", Name: i.Name, Description: i.Description,
		Platform: "Linux/UNIX", RootType: "ebs", Root: i.Root, Virtual: "hvm", Hypervisor: "xen", ENA: true,
		Disks: setOf([]imgDisk{{i.Root, i.snapshot(), i.SizeGB, "gp3", true, false}})}
}

func describeImages(q *request) (any, error) {
	ids, owners := q.list("ImageId"), q.list("Owner")
	for _, id := range ids {
		if _, err := q.region.image(id); err != nil {
			return nil, err
		}
	}
	var found []image
	for _, i := range q.region.images {
		ok, err := q.passes(nil, fields{"image-id": one(i.ID), "name": one(i.Name), "architecture": one(i.Arch), "state": one("available"),
			"owner-id": one(i.Owner), "owner-alias": one(i.Alias), "is-public": one("true"), "root-device-type": one("ebs"),
			"root-device-name": one(i.Root), "virtualization-type": one("hvm"), "description": one(i.Description), "image-type": one("machine")})
		if err != nil {
			return nil, err
		}
		owned := len(owners) == 0 || slices.Contains(owners, i.Owner) || i.Alias != "" && slices.Contains(owners, i.Alias)
		listed := !i.Deprecated || q.is("IncludeDeprecated") || slices.Contains(ids, i.ID)
		if ok && owned && listed && among(i.ID, ids) {
			found = append(found, i)
		}
	}
	slices.SortFunc(found, func(a, b image) int { return strings.Compare(a.ID, b.ID) })
	found, next, err := page(q, found, 1000, func(i image) string { return i.ID })
	if err != nil {
		return nil, err
	}
	return struct {
		Images set[imageXML] `xml:"imagesSet"`
		listing
	}{setOf(each(found, image.xml)), listing{next}}, nil
}

// each makes one list of another.
func each[T, X any](items []T, of func(T) X) []X {
	out := make([]X, 0, len(items))
	for _, v := range items {
		out = append(out, of(v))
	}
	return out
}

// sortable is a number that sorts as text.
func sortable(n int) string { return fmt.Sprintf("%09d", n) }
