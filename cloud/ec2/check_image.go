package ec2

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/ami"
	"github.com/dlwb/dlwb/internal/wholefile"
)

// knownImages is a file in the provider's directory with the images that names
// stood for lately. To find the newest one takes some twenty calls, one after
// the other: too long for a plan. A launch always asks anew.
const knownImages = "images.json"

// youngImage is for how long a plan believes it.
const youngImage = 6 * time.Hour

type knownImage struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// findImage is the image that the nodes would start from.
func (c *preflight) findImage(ctx context.Context) (ami.Image, error) {
	arch := c.offers[0].Arch
	key := c.api.Endpoint() + " " + c.region + " " + arch + " " + cmp.Or(c.spec.Image, ami.Default)
	known := c.p.imagesKnown()
	if k, ok := known[key]; ok && time.Since(k.At) < youngImage {
		spec := c.spec
		spec.Image = k.ID
		if img, err := c.p.image(ctx, c.region, arch, spec); err == nil {
			return img, nil
		}
	}
	img, err := c.p.image(ctx, c.region, arch, c.spec)
	if err == nil {
		known[key] = knownImage{img.ID, time.Now()}
		c.p.keepImages(known)
	}
	return img, err
}

func (p *Provider) imagesKnown() map[string]knownImage {
	known := map[string]knownImage{}
	if b, err := os.ReadFile(filepath.Join(p.dir, knownImages)); p.dir == "" || err != nil || json.Unmarshal(b, &known) != nil {
		return map[string]knownImage{}
	}
	return known
}

// keepImages writes down what may be forgotten: an error is no harm.
func (p *Provider) keepImages(known map[string]knownImage) {
	if p.dir == "" || os.MkdirAll(p.dir, 0o700) != nil {
		return
	}
	if b, err := json.Marshal(known); err == nil {
		_ = wholefile.Write(filepath.Join(p.dir, knownImages), b, 0o600)
	}
}

// image finds the image that a spec asks for, in a region.
func (p *Provider) image(ctx context.Context, region, arch string, spec cloud.Spec) (ami.Image, error) {
	api, err := p.api(ctx)
	if err != nil {
		return ami.Image{}, err
	}
	ec2, err := p.connect(ctx, region)
	if err != nil {
		return ami.Image{}, err
	}
	return ami.Finder{EC2: ec2, SSM: api.SSM(region), Region: region}.Find(ctx, arch, spec.Image, own(spec).User)
}
