package planning

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/profiles"
)

// A plan says where results go besides, before anything does.
func TestAPlanSaysThatResultsGoToS3(t *testing.T) {
	p := Plan{Profile: &profiles.Profile{Results: profiles.Results{S3: "s3://lab/results"}}}
	if text := p.Text(); !strings.Contains(text, "s3://lab/results besides") {
		t.Error(text)
	}
}
