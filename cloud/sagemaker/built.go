package sagemaker

import (
	"context"
	"slices"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/ownimage"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"
)

// build gives the job the image of its profile's Dockerfile, where it has one.
func (s *submission) build(ctx context.Context, enter func(step, text string)) error {
	order, err := ownimage.Ordered(s.job.Spec.Image, about.Own[options.Machines](s.job.Spec.Own).Repository)
	if err != nil || order == nil {
		return err
	}
	d, err := s.p.doors.Open(ctx, regionOf(s.job.Spec))
	if err != nil {
		return err
	}
	b, err := ownimage.Make(ctx, d.api, d.region, *order, s.job.Code, enter, s.progress)
	s.job.Spec.Image, s.built = b.Name(), &b
	return err
}

// checkBuilt looks what would be built of a Dockerfile.
func (c *check) checkBuilt(ctx context.Context, order *ownimage.Order, err error) []cloud.Finding {
	if err != nil {
		return []cloud.Finding{cloud.FromError("image", err, "")}
	}
	b, found := ownimage.Check(ctx, c.api, c.region, *order, c.spec.Code)
	if b.Address != "" {
		c.image = b.Name()
	}
	return []cloud.Finding{found}
}

// pulling narrows the rights to pull an image to the one repository that it is in.
func (c *check) pulling(rights []need) []need {
	for i, n := range rights {
		if c.m.Repository != "" && slices.Contains(ownimage.Pulls, n.action) {
			rights[i].resource = ownimage.ARN(c.partition, c.region, c.account, c.m.Repository)
		}
	}
	return rights
}

// images tells which images of a life's jobs stay in their repositories.
func images(entries []cloud.Entry, progress cloud.Progress) {
	var told []string
	for i := range entries {
		r, err := ownerOf(&entries[i])
		if entries[i].Kind != kindJob || err != nil || r.Built == nil {
			continue
		}
		if text := r.Built.Stays(); !slices.Contains(told, text) {
			told = append(told, text)
			progress(-1, text)
		}
	}
}
