package sagemaker

import (
	"bytes"
	"context"
	_ "embed" // the launcher
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/pack"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"
	"github.com/dlwb/dlwb/internal/units"
)

//go:embed launch.py
var launchPy string

const (
	// channelName is the channel by which the launcher and the code come.
	channelName = "dlwb"
	// entrypoint begins the launcher with whichever Python an image has.
	entrypoint = `exec "$(command -v python3 || command -v python)" -u "${SAGEMAKER_BASE_DIR:-/opt/ml}/input/data/dlwb/launch.py"`
	// dirWork is the launcher's own directory in a container.
	dirWork = "/opt/ml/dlwb"
)

// sourceKey is where script mode's code lies.
func (r ref) sourceKey() string { return r.Prefix + "source/sourcedir.tar.gz" }

// object is one that is put into S3.
type object struct {
	key  string
	body []byte
}

// mostCode bounds the packed code: more is data, and belongs into a channel.
const mostCode = 500 << 20

// objectsOf are the objects that a job needs.
func objectsOf(j cloud.Job, r ref) ([]object, error) {
	if about.Own[options.Machines](j.Spec.Own).Estimator != "" {
		body, err := packed(func(a *pack.Archive, full func() bool) { a.Code("", j.Code, full) })
		return []object{{r.sourceKey(), body}}, err
	}
	env, err := json.Marshal(append([]string{}, j.Env...))
	if err != nil {
		return nil, err
	}
	keep, err := json.Marshal(append([]string{}, j.Keep...))
	if err != nil {
		return nil, err
	}
	nodes := pack.Nodes(j, dirWork, func(word string) string { return word })
	texts := make([]string, len(nodes))
	for i, n := range nodes {
		text, err := json.Marshal(n)
		if err != nil {
			return nil, err
		}
		texts[i] = string(text)
	}
	body, err := packed(func(a *pack.Archive, full func() bool) {
		a.Text("launch.py", pack.Launcher)
		a.Text("env.json", string(env))
		a.Text("keep.json", string(keep))
		for i, text := range texts {
			a.Text(fmt.Sprintf("node/%d.json", i), text)
		}
		a.Code("code/", j.Code, full)
	})
	at := r.Prefix + channelName + "/"
	return []object{{at + "payload.tar.gz", body}, {at + "launch.py", []byte(launchPy)}}, err
}

func packed(fill func(a *pack.Archive, full func() bool)) ([]byte, error) {
	var b bytes.Buffer
	a := pack.NewArchive(&b)
	fill(a, func() bool { return b.Len() > mostCode })
	if err := a.Close(); err != nil {
		return nil, err
	}
	if b.Len() > mostCode {
		return nil, &plainError{fmt.Sprintf("the code is more than %s when packed; the largest files are %s", units.Bytes(mostCode), a.Largest()),
			"leave out what is no code (code.exclude, .dlwbignore); data is a channel (machines.channels)"}
	}
	return b.Bytes(), nil
}

// put uploads what a job needs. Who does it again puts the same.
func (d *door) put(ctx context.Context, r ref, objects []object) error {
	for _, o := range objects {
		ctx, cancel := context.WithTimeout(ctx, callLimit+time30(len(o.body)))
		_, err := d.bucket().PutObject(ctx, &s3.PutObjectInput{Bucket: &r.Bucket, Key: aws.String(o.key), Body: bytes.NewReader(o.body)})
		cancel()
		if err != nil {
			return d.explainS3(r.Bucket, fmt.Errorf("upload %s: %w", o.key[strings.LastIndex(o.key, "/")+1:], err))
		}
	}
	return nil
}
