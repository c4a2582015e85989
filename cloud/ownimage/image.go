// Package ownimage gives a job the image that its profile describes by a Dockerfile: it is
// built on this machine by docker or podman from the code that goes with the job, and
// pushed to a repository of ECR that is there. Its tag is a digest of all that it is made
// of, so that nothing is built or pushed that the repository has already, and a job names
// it by the digest of what was pushed. The image stays in the repository.
package ownimage

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/dockerfile"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/units"
)

// Platform is what images are built for, whatever this machine is.
const Platform = "linux/amd64"

// Order is an image that a profile wants built.
type Order struct {
	Dockerfile string // in the code directory, with slashes
	Repository string // of ECR, by its name
}

// repositoryForm is what ECR takes as a name.
var repositoryForm = pattern.New(`^(?:[a-z0-9]+(?:[._-]+[a-z0-9]+)*/)*[a-z0-9]+(?:[._-]+[a-z0-9]+)*$`)

// Ordered reads what a profile wants built; nil: its image exists already.
func Ordered(name, repository string) (*Order, error) {
	file := path.Clean(name)
	switch is := dockerfile.Is(name); {
	case !is && repository == "":
		return nil, nil
	case !is && name == "":
		return nil, &Error{Why: "machines.repository is where an image goes that is built from a Dockerfile, and there is no machines.image", Next: "machines.image: ./Dockerfile, or leave machines.repository out"}
	case !is:
		return nil, &Error{Why: fmt.Sprintf("machines.repository is where an image goes that is built from a Dockerfile, and machines.image is %q, which is none", name), Next: "machines.image: ./Dockerfile, or leave machines.repository out"}
	case repository == "":
		return nil, &Error{Why: "machines.image is the Dockerfile " + file + ", and nothing says to which repository its image is pushed", Next: "machines.repository: NAME, which aws ecr create-repository --repository-name NAME makes"}
	case !filepath.IsLocal(filepath.FromSlash(file)) || path.IsAbs(file):
		return nil, &Error{Why: "the Dockerfile " + name + " is not in the code directory", Next: "machines.image: a path below code.dir"}
	case len(repository) < 2 || len(repository) > 256 || !repositoryForm.MatchString(repository):
		return nil, &Error{Why: fmt.Sprintf("%q is no name of a repository of ECR", repository), Next: "its name alone, without a registry in front and a tag behind: team/train; aws ecr describe-repositories lists those that are"}
	}
	return &Order{Dockerfile: file, Repository: repository}, nil
}

// Built is an image in a repository. It holds no secret.
type Built struct {
	Region     string `json:"region"`
	Repository string `json:"repository"`
	Address    string `json:"address"` // of the repository
	ARN        string `json:"arn"`     // of the repository
	Tag        string `json:"tag"`
	Digest     string `json:"digest"` // empty: it is not there yet
}

// Name is the image as a job names it: by its digest, where that is known.
func (b Built) Name() string {
	if b.Digest == "" {
		return b.Address + ":" + b.Tag
	}
	return b.Address + "@" + b.Digest
}

// Stays says where the image of a run stays when everything else is removed, and by
// which command it goes.
func (b Built) Stays() string {
	return fmt.Sprintf("the image stays at %s:%s; aws ecr batch-delete-image --region %s --repository-name %s --image-ids imageTag=%s removes it", b.Address, b.Tag, b.Region, b.Repository, b.Tag)
}

// Pulls are the rights by which an image is pulled from its repository, and All those
// that no repository can be named for.
var (
	Pulls = []string{"ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer", "ecr:BatchCheckLayerAvailability"}
	All   = "ecr:GetAuthorizationToken"
)

// ARN is that of a repository.
func ARN(partition, region, account, repository string) string {
	return "arn:" + partition + ":ecr:" + region + ":" + account + ":repository/" + repository
}

// Make gives the image of an order: the one that the repository has, or a new one. enter
// is called where the step begins, with what it is.
func Make(ctx context.Context, api *awsapi.API, region string, o Order, code cloud.Code, enter func(step, text string), progress cloud.Progress) (Built, error) {
	tell := func(text string) { progress(-1, text) }
	from, err := read(o, code)
	if err != nil {
		return Built{}, err
	}
	r, err := open(ctx, api, region, o.Repository)
	if err != nil {
		return Built{}, err
	}
	b := Built{Region: region, Repository: o.Repository, Address: r.address, ARN: r.arn, Tag: from.tag}
	if b.Digest, err = r.find(ctx, b.Tag); err != nil {
		return Built{}, err
	}
	if b.Digest != "" {
		enter(cloud.StepBuild, "unchanged: "+b.Address+":"+b.Tag+" is of this "+o.Dockerfile)
		return b, nil
	}
	enter(cloud.StepBuild, fmt.Sprintf("%s with %s for %s, to %s", o.Dockerfile, units.Count(len(from.files), "file"), Platform, b.Address))
	e, err := answering(ctx, askLimit)
	if err != nil {
		return Built{}, err
	}
	room, err := newRoom()
	if err != nil {
		return Built{}, err
	}
	defer room.remove()
	w := work{engine: e, room: room, repository: r, order: o, image: b.Address + ":" + b.Tag, tell: tell}
	if err := w.build(ctx, from); err != nil {
		return Built{}, err
	}
	b.Digest, err = w.push(ctx, b.Tag)
	return b, err
}

// Check looks what Make would do, and changes nothing. files give what of the code goes
// with the job; nil: that is not known. What is told of the image is without its digest
// where it is not there yet.
func Check(ctx context.Context, api *awsapi.API, region string, o Order, files func(context.Context) (cloud.Code, error)) (Built, cloud.Finding) {
	const what = "image"
	r, err := open(ctx, api, region, o.Repository)
	if err != nil {
		return Built{}, cloud.FromError(what, err, "")
	}
	b := Built{Region: region, Repository: o.Repository, Address: r.address, ARN: r.arn, Tag: "TAG"}
	if files == nil {
		return b, cloud.Unchecked(what, "what "+o.Dockerfile+" is made of is not known here", "")
	}
	code, err := files(ctx)
	if err != nil {
		return b, cloud.FromError(what, fmt.Errorf("read the code: %w", err), "")
	}
	from, err := read(o, code)
	if err != nil {
		return b, cloud.FromError(what, err, "")
	}
	b.Tag = from.tag
	if b.Digest, err = r.find(ctx, b.Tag); err != nil {
		return b, cloud.FromError(what, err, "")
	}
	if b.Digest != "" {
		return b, cloud.Passed(what, "unchanged: "+b.Address+":"+b.Tag+" is of this "+o.Dockerfile)
	}
	e, err := answering(ctx, lookLimit)
	if err != nil {
		return b, cloud.FromError(what, err, "")
	}
	return b, cloud.Passed(what, fmt.Sprintf("%s and %s are built here by %s for %s, and pushed to %s", o.Dockerfile, units.Count(len(from.files), "file"), e.name, Platform, strings.TrimSuffix(b.Name(), ":"+b.Tag)))
}

// Error is why there is no image, with what to do about it.
type Error struct {
	Why, Next string
	// Command is what failed, and Lines are its last lines; empty: nothing was run.
	Command string
	Lines   []string
	late    bool
}

// Doubtful reports whether that is only what was not answered in time.
func (e *Error) Doubtful() bool { return e.late }

func (e *Error) Error() string { return e.Why }

// Advice says what to do.
func (e *Error) Advice() string { return e.Next }

// Said is what was run, and its last lines.
func (e *Error) Said() (command string, last []string) { return e.Command, e.Lines }
