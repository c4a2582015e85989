package sagemaker

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud/ec2/catalog"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"
	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/internal/pattern"
)

// The account that has AWS's training containers in most regions, and in the others.
const usualAccount = "763104351884"

var accounts = map[string]string{
	"af-south-1": "626614931356", "ap-east-1": "871362719292", "ap-northeast-3": "364406365360", "eu-south-1": "692866216735",
	"il-central-1": "780543022126", "me-south-1": "217643126080", "us-gov-west-1": "442386744353", "cn-north-1": "727897471807", "cn-northwest-1": "727897471807",
}

// versions are the newest of AWS's containers that is known here, with its Python.
var versions = map[string][2]string{options.PyTorch: {"2.8.0", "py312"}, options.TensorFlow: {"2.19.0", "py312"}}

// pythons are those of older ones, by the beginning of the version.
var pythons = []struct{ framework, begins, python string }{
	{options.PyTorch, "2.8", "py312"}, {options.PyTorch, "2.7", "py312"}, {options.PyTorch, "2.6", "py312"}, {options.PyTorch, "2.5", "py311"}, {options.PyTorch, "2.4", "py311"},
	{options.PyTorch, "2.3", "py311"}, {options.PyTorch, "2.", "py310"}, {options.PyTorch, "1.13", "py39"}, {options.PyTorch, "1.12", "py38"},
	{options.TensorFlow, "2.19", "py312"}, {options.TensorFlow, "2.18", "py310"}, {options.TensorFlow, "2.16", "py310"}, {options.TensorFlow, "2.14", "py310"},
	{options.TensorFlow, "2.13", "py310"}, {options.TensorFlow, "2.12", "py310"}, {options.TensorFlow, "2.11", "py39"},
}

var imageForm = pattern.New(`^([0-9]{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?/`)

// imageOf is the image of a profile: an alias of AWS's own containers, such as
// pytorch or tensorflow:2.16.2, or the address of another.
func imageOf(text, estimator, region, instance string) (string, error) {
	if text == "" {
		text = estimator
	}
	if text == "" {
		text = options.PyTorch
	}
	if strings.Contains(text, "/") {
		return text, nil
	}
	framework, version, _ := strings.Cut(text, ":")
	newest, known := versions[framework]
	if !known {
		names := slices.Sorted(maps.Keys(versions))
		next := "one of " + strings.Join(names, ", ") + ", with :VERSION behind it, or the address of an image: ACCOUNT.dkr.ecr.REGION.amazonaws.com/NAME:TAG"
		if near := nearword.Nearest(framework, names); near != "" {
			next = "did you mean " + near + "? " + next
		}
		return "", &plainError{fmt.Sprintf("there is no image %q", text), next}
	}
	python := newest[1]
	if version == "" {
		version = newest[0]
	} else if python = pythonOf(framework, version); python == "" {
		return "", &plainError{fmt.Sprintf("it is not known here which Python the %s container %s has", framework, version),
			"write the address of the image whole: " + registryOf(region) + "/" + framework + "-training:TAG"}
	}
	processor := "cpu"
	if gpus, _ := catalog.SizeOf(typeOf(instance)); gpus > 0 {
		processor = "gpu"
	}
	return fmt.Sprintf("%s/%s-training:%s-%s-%s", registryOf(region), framework, version, processor, python), nil
}

func pythonOf(framework, version string) string {
	for _, p := range pythons {
		if p.framework == framework && strings.HasPrefix(version, p.begins) {
			return p.python
		}
	}
	return ""
}

func registryOf(region string) string {
	account := accounts[region]
	if account == "" {
		account = usualAccount
	}
	host := account + ".dkr.ecr." + region + ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		host += ".cn"
	}
	return host
}

// typeOf is a type as EC2 calls it.
func typeOf(instance string) string { return strings.TrimPrefix(instance, "ml.") }
