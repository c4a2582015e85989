package inputs

import (
	"context"
	"crypto/sha256"
	_ "embed" // the script that fetches
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/objects"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/workbench/event"
)

// A channel in S3 is listed here, with the user's own credentials, and read by the
// node, which has none: it gets an address for each object that is signed for a time.

//go:embed scripts/objects.py
var objectsScript string

const (
	// objectsMost bounds the objects of a channel: each is a signed address that a node
	// is told.
	objectsMost = 20_000
	// signedFor is how long an address can be used; credentials that end earlier end it
	// earlier.
	signedFor = 12 * time.Hour
	// listLimit bounds the listing of one channel.
	listLimit = 2 * time.Minute
	// lookLimit bounds that of a plan.
	lookLimit = 20 * time.Second
)

// inS3 reports whether a channel is read from S3.
func (c Channel) inS3() bool { return c.Scheme() == "s3" }

// list lists a channel, sorted by path.
func list(ctx context.Context, c Channel, limit time.Duration) (*objects.Bucket, objects.Listing, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b, err := objects.Open(ctx, c.From)
	if err != nil {
		return nil, objects.Listing{}, err
	}
	l, err := b.List(ctx, objectsMost)
	slices.SortFunc(l.Objects, func(a, b objects.Object) int { return strings.Compare(a.Path, b.Path) })
	if err == nil && c.Most > 0 && l.Bytes() > c.Most {
		err = fmt.Errorf("%s has %s, and data of the profile allows %s (most)", c.From, units.Bytes(l.Bytes()), units.Bytes(c.Most))
	}
	return b, l, err
}

// Look says of each channel in S3 what is there: what can't be read is to be known
// before anything is paid.
func Look(ctx context.Context, all []Channel) (found []cloud.Finding) {
	for _, c := range all {
		if !c.inS3() {
			continue
		}
		what := "data." + c.Name
		_, l, err := list(ctx, c, lookLimit)
		switch {
		case err != nil:
			found = append(found, cloud.FromError(what, err, "aws s3 ls "+c.From))
		case len(l.Unfit) > 0:
			found = append(found, cloud.Warning(what, unfitText(l), ""))
		default:
			found = append(found, cloud.Passed(what, fmt.Sprintf("%s in %s", event.SizeText(len(l.Objects), l.Bytes()), c.From)))
		}
	}
	return found
}

func unfitText(l objects.Listing) string {
	return fmt.Sprintf("%s left out, whose keys can't be files, such as %q", units.Count(len(l.Unfit), "object"), l.Unfit[0])
}

// digest tells a set of objects from any other.
func digest(address string, all []objects.Object) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", address)
	for _, o := range all {
		fmt.Fprintf(h, "%q %d %q\n", o.Path, o.Size, o.ETag)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// wanted is what the script on the node is told.
type wanted struct {
	Address string       `json:"address"`
	Digest  string       `json:"digest"`
	Dir     string       `json:"dir"`
	Stamp   string       `json:"stamp"`
	Most    int64        `json:"most"`
	Files   []wantedFile `json:"files"`
}

type wantedFile struct {
	Path     string `json:"path"`
	Size     int64  `json:"size"`
	ETag     string `json:"etag"`
	Modified int64  `json:"modified"`
	URL      string `json:"url"`
}

// gathering is the line that fetches a channel from S3, and what it reads: the script,
// and behind it what is wanted.
func (s Site) gathering(ctx context.Context, node int, c Channel) (line, input string, err error) {
	b, l, err := list(ctx, c, listLimit)
	if err != nil {
		return "", "", err
	}
	if len(l.Unfit) > 0 {
		s.Warn("channel "+c.Name+": "+unfitText(l), "")
	}
	w := wanted{Address: c.From, Digest: digest(c.From, l.Objects), Dir: s.dir(c), Stamp: s.stampPath(c), Most: c.Most}
	for _, o := range l.Objects {
		address, err := b.Sign(ctx, o, signedFor)
		if err != nil {
			return "", "", err
		}
		w.Files = append(w.Files, wantedFile{o.Path, o.Size, o.ETag, o.Modified.Unix(), address})
	}
	text, err := json.Marshal(w)
	if err != nil {
		return "", "", err
	}
	start := fmt.Sprintf("import sys; exec(compile(sys.stdin.buffer.read(%d), 'objects.py', 'exec'))", len(objectsScript))
	return "exec " + shellword.Join(append(s.Python(node), "-c", start)...), objectsScript + string(text), nil
}
