package slurm

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/dlwb/dlwb/cloud"
)

// inside starts a program in an image of apptainer, or of singularity where that is
// what there is. Home, code and results lie at the same paths there: both mount the home
// directory, /tmp and where they are started.
const inside = `p=apptainer; command -v apptainer >/dev/null 2>&1 || p=singularity; exec "$p" exec "$@"`

// inImage is a program as it is started in an image: as it is without one. Its Python
// is that of the image; one that the environment has made lies on this cluster's disk
// and would not find its own libraries there.
func inImage(image, home string, gpus int, argv []string) ([]string, error) {
	if image == "" || len(argv) == 0 {
		return argv, nil
	}
	program := argv[0]
	switch {
	case strings.HasPrefix(program, home+"/"):
		return nil, fmt.Errorf("the ranks run in the image %s, which has a Python of its own, and the environment of the profile has made %s: say environment: system", image, program)
	case path.IsAbs(program) && strings.HasPrefix(path.Base(program), "python"):
		program = "python3" // the first of the image's PATH
	}
	all := []string{"sh", "-c", inside, "dlwb"}
	if gpus > 0 {
		all = append(all, "--nv")
	}
	if rest, own := strings.CutPrefix(image, "~/"); own {
		image = home + "/" + rest
	}
	return append(append(all, image, program), argv[1:]...), nil
}

// image looks whether the image of a profile, and what runs it, are there.
func (c *cluster) image(ctx context.Context, m cloud.Machine, image string) cloud.Finding {
	file := image
	if rest, own := strings.CutPrefix(image, "~/"); own {
		file = "./" + rest
	}
	there := `true`
	if !strings.Contains(image, "://") {
		there = `{ cd && [ -r ` + words(file) + ` ] || echo none; }`
	}
	a, err := askOne(ctx, m, `command -v apptainer || command -v singularity || echo nothing; `+there)
	switch lines := a.lines(); {
	case err != nil || len(lines) == 0:
		return cloud.Unchecked("image", "whether the image is there is not known", "")
	case lines[len(lines)-1] == "none":
		return bad("image", "there is no image "+image+" on "+c.host, "machines.image is the path of a file that the nodes have too, or an address such as docker://pytorch/pytorch:latest")
	case lines[0] == "nothing":
		return cloud.Unchecked("image", "neither apptainer nor singularity is on the PATH of "+c.host+"; the nodes may have it", "if it is a module, add it to machines.modules")
	default:
		return good("image", image+" by "+path.Base(lines[0]))
	}
}
