package dockerfile

import (
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// reason is a way in which docker and podman fail, in their words.
type reason struct {
	pattern *pattern.Pattern
	why     string // $image is what was built or pulled, $at and $of where; $1 is the pattern's first group
	next    string
}

var reasons = []reason{
	{pattern.New(`no space left on device|disk quota exceeded`), "$of disk is full, or its quota is used up",
		"make room there (docker system prune)"},
	{pattern.New(`no such host|i/o timeout|connection refused|TLS handshake timeout|network is unreachable|Temporary failure in name resolution|failed to do request`),
		"the registry of $image can't be reached from $at", "check the network of $at, or bring the image there (docker load)"},
	{pattern.New(`manifest (?:for \S+ )?(?:unknown|not found)|not found: manifest|repository does not exist|name unknown|pull access denied|requested access to the resource is denied|unauthorized|no basic auth credentials`),
		"$image is not there for $at: it does not exist, or it is private", "correct its name and tag, or log in on $at (docker login)"},
	{pattern.New(`toomanyrequests|[Tt]oo [Mm]any [Rr]equests`), "the registry of $image gives $at no more for now", "log in on $at (docker login), which it lets have more, or wait"},
	{pattern.New(`short-name|unqualified-search`), "the name of $image does not say its registry", "write it whole: docker.io/OWNER/NAME:TAG"},
	{pattern.New(`exec format error|no matching manifest|image platform`), "$image is for another kind of processor", "use one for that of $at"},
	{pattern.New(`(?:COPY|ADD)[^\n]*(?:no such file|not found|no items matching)|copier: stat: "?([^"\n]+)"?: no such file`),
		"the Dockerfile copies a file that is not in the code that was sent $1", "check that no ignore file leaves it out"},
}

// Place is where docker or podman runs, in words.
type Place struct{ At, Of string }

// Node is a node, Here this machine.
var (
	Node = Place{"the node", "the node's"}
	Here = Place{"this machine", "this machine's"}
)

// Explain tells by the last lines of docker or podman why they failed with an image, and
// what to do; empty: they say nothing that is known here.
func Explain(last []string, image string, place Place) (why, next string) {
	text := strings.Join(last, "\n")
	for _, r := range reasons {
		if m := r.pattern.FindStringSubmatch(text); m != nil {
			first := ""
			if len(m) > 1 {
				first = strings.TrimSpace(m[1])
			}
			words := strings.NewReplacer("$image", image, "$at", place.At, "$of", place.Of, "$1", first)
			return strings.TrimSpace(words.Replace(r.why)), words.Replace(r.next)
		}
	}
	return "", ""
}
