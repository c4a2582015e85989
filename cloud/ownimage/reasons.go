package ownimage

import (
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// reason is a way in which a step fails, in the words of engines and registries.
type reason struct {
	pattern   *pattern.Pattern
	why, next string
}

// buildReasons are those that only a machine other than the image's has.
var buildReasons = []reason{
	{pattern.New(`exec format error`), "this machine can't run programs for " + Platform + ", and the Dockerfile runs some",
		"let it: docker run --privileged --rm tonistiigi/binfmt --install amd64 (Debian: apt-get install qemu-user-static)"},
	{pattern.New(`"--platform" is only supported|unknown flag: --platform`), "this docker is too old to build for another platform", "install a newer one, or podman"},
}

// pushReasons are those of ECR.
var pushReasons = []reason{
	{pattern.New(`no space left on device|disk quota exceeded`), "this machine's disk is full", "make room there (docker system prune)"},
	{pattern.New(`(?i)repository with name \S+ does not exist|name unknown|NAME_UNKNOWN`), "ECR has no repository $name in $region any more",
		"aws ecr create-repository --region $region --repository-name $name"},
	{pattern.New(`(?i)tag immutab|is immutable`), "the tags of repository $name can't be set again, and another image has this one", "aws ecr describe-images --region $region --repository-name $name"},
	{pattern.New(`(?i)token has expired|expired token`), "ECR takes the token of this push no more, and a new one neither", "is the clock of this machine right?"},
	{pattern.New(`(?i)not authorized to perform|denied|\b403\b|\b401\b|unauthorized|no basic auth|authentication required`), "you may not push to repository $name of ECR",
		"you need ecr:GetAuthorizationToken on *, and ecr:InitiateLayerUpload, ecr:UploadLayerPart, ecr:CompleteLayerUpload, ecr:PutImage and ecr:BatchCheckLayerAvailability on it"},
	{pattern.New(`(?i)no such host|i/o timeout|connection (?:refused|reset)|TLS handshake timeout|network is unreachable|broken pipe|\bEOF\b`), "the registry of ECR could not be reached to the end of the push",
		"is the network there? Run it again: layers that have arrived are not sent twice"},
}

// explain tells by the last lines why a step failed; empty: that is not known here.
func explain(text string, reasons []reason, r *repository) (why, next string) {
	for _, one := range reasons {
		if one.pattern.MatchString(text) {
			words := strings.NewReplacer("$name", r.name, "$region", r.region)
			return words.Replace(one.why), words.Replace(one.next)
		}
	}
	return "", ""
}
