// Package ami finds the machine image that a profile names, and says what its
// machines need: who logs in, and how large the disk is at least.
package ami

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/units"
)

// Image is a machine image in one region.
type Image struct {
	ID, Name string
	Arch     string // "x86_64" or "arm64"
	Device   string // of its root disk, "/dev/sda1"
	GiB      int32  // of its root disk, at least
	User     string // who logs in
}

// Default is what a profile without an image gets.
const Default = "pytorch"

// deepLearning is where AWS publishes the ids of its Deep Learning AMIs.
const deepLearning = "/aws/service/deeplearning/ami/"

// Parameters are the calls that read what AWS and others publish of images.
type Parameters interface {
	ssm.GetParametersByPathAPIClient
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
}

// Finder finds images in one region.
type Finder struct {
	EC2    awsec2.DescribeImagesAPIClient
	SSM    Parameters
	Region string
}

// Find finds the image of a name for machines of an architecture: "ami-…",
// "resolve:ssm:/path/of/a/parameter", "ubuntu", "base", "pytorch" or "pytorch-2.8";
// empty: Default. user is who logs in where that is not the image's own.
func (f Finder) Find(ctx context.Context, arch, name, user string) (Image, error) {
	id, err := f.id(ctx, arch, cmp.Or(name, Default))
	if err != nil {
		return Image{}, err
	}
	out, err := f.EC2.DescribeImages(ctx, &awsec2.DescribeImagesInput{ImageIds: []string{id}})
	if err != nil {
		return Image{}, awsapi.Explain(err, awsapi.Call{Action: "DescribeImages", Region: f.Region, ID: id})
	}
	if len(out.Images) == 0 {
		return Image{}, fmt.Errorf("the image %s is not in %s, or may not be used by this account", id, f.Region)
	}
	img := describeImage(out.Images[0])
	if err := unfit(out.Images[0], img, arch); err != nil {
		return Image{}, err
	}
	img.User = cmp.Or(user, img.User)
	return img, nil
}

// unfit is why nothing of a machine from an image would ever answer; nil if it may. AWS
// starts one all the same, for money.
func unfit(i types.Image, img Image, arch string) error {
	switch {
	case img.Arch != arch:
		return fmt.Errorf("the image %s (%s) is for %s machines, and these are %s: choose another image or instance type",
			img.ID, img.Name, img.Arch, arch)
	case strings.EqualFold(string(i.Platform), string(types.PlatformValuesWindows)), strings.HasPrefix(aws.ToString(i.PlatformDetails), "Windows"):
		return fmt.Errorf("the image %s (%s) is one of Windows, and nodes are Linux machines: choose another image", img.ID, img.Name)
	case i.State == types.ImageStateFailed, i.State == types.ImageStateDeregistered, i.State == types.ImageStateInvalid, i.State == types.ImageStateError:
		return fmt.Errorf("the image %s (%s) can't be used: AWS says that it is %s", img.ID, img.Name, i.State)
	}
	return nil
}

func describeImage(i types.Image) Image {
	img := Image{ID: aws.ToString(i.ImageId), Name: aws.ToString(i.Name), Arch: string(i.Architecture),
		Device: cmp.Or(aws.ToString(i.RootDeviceName), "/dev/sda1"), User: loginUser(i)}
	for _, m := range i.BlockDeviceMappings {
		if aws.ToString(m.DeviceName) == img.Device && m.Ebs != nil {
			img.GiB = aws.ToInt32(m.Ebs.VolumeSize)
		}
	}
	return img
}

var amazonLinux = pattern.New(`(?i)amazon linux|^al20\d\d-|^amzn2?-|amazon-linux`)

// loginUser is who an image lets log in, by its name: AWS does not tell.
func loginUser(i types.Image) string {
	if amazonLinux.MatchString(aws.ToString(i.Name)) {
		return "ec2-user"
	}
	return "ubuntu"
}

// Room is what a disk has beyond its image when the profile names no size, in GiB.
const Room = 100

// DiskGiB is how large the root disk is to be, where so many bytes are asked for; 0:
// none are.
func (img Image) DiskGiB(asked int64) (int32, error) {
	if asked == 0 {
		return img.GiB + Room, nil
	}
	gib := int32((asked + 1<<30 - 1) >> 30)
	if gib < img.GiB {
		return 0, fmt.Errorf("a disk of %s is too small: the image %s (%s) needs %s",
			units.Binary(int64(gib)<<30), img.ID, img.Name, units.Binary(int64(img.GiB)<<30))
	}
	return gib, nil
}

// id is that of the image of a name.
func (f Finder) id(ctx context.Context, arch, name string) (string, error) {
	if strings.HasPrefix(name, "ami-") {
		return name, nil
	}
	if path, ok := parameter(name, arch); ok {
		return f.parameter(ctx, path)
	}
	pattern, err := aliasPattern(name)
	if err != nil {
		return "", err
	}
	all, err := f.deepLearning(ctx, arch)
	if err != nil {
		return "", err
	}
	id, ok := newest(all, pattern)
	if !ok {
		return "", fmt.Errorf("there is no image %q for %s machines in %s; see aws ssm get-parameters-by-path --recursive --region %s --path %s%s",
			name, arch, f.Region, f.Region, deepLearning, arch)
	}
	return id, nil
}

// parameter is the SSM parameter that a name stands for by itself.
func parameter(name, arch string) (path string, ok bool) {
	if name == "ubuntu" {
		canonical := map[string]string{"x86_64": "amd64", "arm64": "arm64"}[arch]
		return "/aws/service/canonical/ubuntu/server/24.04/stable/current/" + canonical + "/hvm/ebs-gp3/ami-id", true
	}
	if path, ok = strings.CutPrefix(name, "resolve:"); !ok {
		return "", false
	}
	return strings.TrimPrefix(path, "ssm:"), true
}

// parameter reads an image's id from an SSM parameter.
func (f Finder) parameter(ctx context.Context, path string) (string, error) {
	out, err := f.SSM.GetParameter(ctx, &ssm.GetParameterInput{Name: &path})
	if err != nil {
		return "", awsapi.Explain(err, awsapi.Call{Action: "GetParameter", Region: f.Region, ID: path})
	}
	if out.Parameter == nil {
		return "", fmt.Errorf("the SSM parameter %s in %s is empty", path, f.Region)
	}
	return aws.ToString(out.Parameter.Value), nil
}

var pytorchAlias = pattern.New(`^pytorch(?:-(\d+\.\d+))?$`)

// aliasPattern is what the names of the Deep Learning AMIs of an alias look
// like; its groups are the versions, the one that matters most first.
func aliasPattern(alias string) (*regexp.Regexp, error) {
	const version = `(\d+(?:\.\d+)*)`
	if alias == "base" {
		return regexp.MustCompile(`^base-oss-nvidia-driver(?:-gpu)?-ubuntu-` + version + `$`), nil
	}
	m := pytorchAlias.FindStringSubmatch(alias)
	if m == nil {
		return nil, fmt.Errorf("the image %q is none that dlwb knows: pytorch, pytorch-2.8, base, ubuntu, ami-0abc…, or resolve:ssm:/path/of/a/parameter", alias)
	}
	pytorch := version
	if m[1] != "" {
		pytorch = "(" + regexp.QuoteMeta(m[1]) + ")"
	}
	return regexp.MustCompile(`^oss-nvidia-driver-gpu-pytorch-` + pytorch + `-ubuntu-` + version + `$`), nil
}

// deepLearning are the ids of AWS's newest Deep Learning AMIs by their
// kind ("base-oss-nvidia-driver-gpu-ubuntu-24.04").
func (f Finder) deepLearning(ctx context.Context, arch string) (map[string]string, error) {
	path := deepLearning + arch
	all := map[string]string{}
	pages := ssm.NewGetParametersByPathPaginator(f.SSM, &ssm.GetParametersByPathInput{Path: &path, Recursive: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, awsapi.Explain(err, awsapi.Call{Action: "GetParametersByPath", Region: f.Region, ID: path})
		}
		for _, v := range page.Parameters {
			name := strings.TrimPrefix(aws.ToString(v.Name), path+"/")
			if kind, ok := strings.CutSuffix(name, "/latest/ami-id"); ok {
				all[kind] = aws.ToString(v.Value)
			}
		}
	}
	return all, nil
}

// newest finds the image with the highest versions: 2.10 is newer than 2.9.
func newest(images map[string]string, pattern *regexp.Regexp) (id string, ok bool) {
	var best []string
	for _, kind := range slices.Sorted(maps.Keys(images)) {
		m := pattern.FindStringSubmatch(kind)
		if m != nil && (best == nil || slices.CompareFunc(m[1:], best, compareVersions) > 0) {
			best, id = m[1:], images[kind]
		}
	}
	return id, best != nil
}

// compareVersions compares versions number by number.
func compareVersions(a, b string) int {
	return slices.Compare(numbers(a), numbers(b))
}

func numbers(version string) []int {
	var n []int
	for _, s := range strings.Split(version, ".") {
		v, _ := strconv.Atoi(s)
		n = append(n, v)
	}
	return n
}
