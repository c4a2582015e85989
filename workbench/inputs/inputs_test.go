package inputs

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/profiles"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// A data set, or a file, that is named by a link is what the link leads to: a change
// there is a change.
func TestTheIdentityOfWhatALinkLeadsTo(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "v1", "train.csv")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("1,2\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	of := func(path string) string {
		id, err := Identity(t.Context(), []Channel{{Channel: profiles.Channel{Name: "train", From: "data"}, Path: path}})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	links := map[string]string{"dir": filepath.Dir(file), "file": file, "again": filepath.Join(dir, "dir")}
	before := map[string]string{}
	for _, name := range []string{"dir", "file", "again"} {
		at := filepath.Join(dir, name)
		if err := os.Symlink(links[name], at); err != nil {
			t.Fatal(err)
		}
		if before[name] = of(at); before[name] != of(links[name]) {
			t.Errorf("%s: the data are not those that it leads to", name)
		}
	}
	if err := os.WriteFile(file, []byte("1,2\n3,4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, was := range before {
		if of(filepath.Join(dir, name)) == was {
			t.Errorf("%s: what it leads to has changed, and its identity has not", name)
		}
	}
	if _, err := Identity(t.Context(), []Channel{{Path: filepath.Join(dir, "none")}}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// What lies in S3 changes under the same address.
func TestTheIdentityOfWhatLiesInS3(t *testing.T) {
	web := httptest.NewServer(gofakes3.New(s3mem.New(), gofakes3.WithLogger(gofakes3.DiscardLog())).Server())
	defer web.Close()
	for k, v := range map[string]string{"AWS_ENDPOINT_URL_S3": web.URL, "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "x",
		"AWS_SESSION_TOKEN": "", "AWS_PROFILE": "", "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_CONFIG_FILE": filepath.Join(t.TempDir(), "none"), "AWS_SHARED_CREDENTIALS_FILE": filepath.Join(t.TempDir(), "none")} {
		t.Setenv(k, v)
	}
	put := func(path, text string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, web.URL+path, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		reply, err := http.DefaultClient.Do(r)
		if err != nil || reply.StatusCode != http.StatusOK {
			t.Fatal(path, reply, err)
		}
		_ = reply.Body.Close()
	}
	of := func(from string) (string, error) {
		return Identity(t.Context(), []Channel{{Channel: profiles.Channel{Name: "train", From: from}}})
	}
	put("/lab", "")
	put("/lab/set/a.csv", "1,2")
	was, err := of("s3://lab/set")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := of("s3://lab/set"); err != nil || again != was {
		t.Errorf("unchanged, it is another: %v", err)
	}
	put("/lab/set/a.csv", "3,4") // of the same size
	if now, err := of("s3://lab/set"); err != nil || now == was {
		t.Errorf("changed, it is the same: %v", err)
	}
	if _, err := of("s3://lab/none"); err == nil || !strings.Contains(err.Error(), "there is no object at s3://lab/none") {
		t.Error(err)
	}
}
