//go:build unix

// Package fakeecr is a stand-in for Amazon ECR: its API as far as dlwb uses it, and behind
// it a real OCI registry (go-containerregistry's) that asks for the password which the API
// gives. It is a part of the stand-ins for whole accounts, and is for tests alone.
package fakeecr

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Account is whose everything is.
const Account = "123456789012"

// Target begins the names of its calls.
const Target = "AmazonEC2ContainerRegistry_V20150921"

// Fake is the registry of one account and region.
type Fake struct {
	// Host is that of the registry.
	Host string
	// Deny answers a request to the registry in its place; empty: it is let through. The
	// user is who asks.
	Deny func(method, path string) (status int, says string)

	region  string
	server  *httptest.Server
	handler http.Handler

	mu           sync.Mutex
	repositories map[string]bool
	tags         map[string]map[string]string // digests by repository and tag
	tokens       int                          // how many were given
	oldest       int                          // the first that is still taken
	pushes       []string                     // NAME:TAG, in order
}

// Error is one of AWS's.
type Error struct{ Code, Says string }

// New starts one with some repositories.
func New(region string, repositories ...string) *Fake {
	f := &Fake{region: region, repositories: map[string]bool{}, tags: map[string]map[string]string{}, oldest: 1,
		handler: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	for _, name := range repositories {
		f.repositories[name] = true
	}
	f.server = httptest.NewServer(http.HandlerFunc(f.serve))
	f.Host = strings.TrimPrefix(f.server.URL, "http://")
	return f
}

// Close ends the registry.
func (f *Fake) Close() { f.server.Close() }

// Expire has no token be taken any more that was given so far.
func (f *Fake) Expire() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.oldest = f.tokens + 1
}

// Password is that of the newest token.
func (f *Fake) Password() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return password(f.tokens)
}

func password(n int) string { return fmt.Sprintf("ecr-password-%d-3f9a7c", n) }

// Pushes are the tags that were set, in order, as NAME:TAG.
func (f *Fake) Pushes() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.pushes)
}

// Tags are the digests of a repository's tags.
func (f *Fake) Tags(name string) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.tags[name])
}

// Answer answers a call of the API.
func (f *Fake) Answer(call string, body []byte) (any, *Error) {
	var in struct {
		RepositoryNames []string
		RepositoryName  string
		ImageIds        []struct{ ImageTag, ImageDigest string }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, &Error{"SerializationException", err.Error()}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch call {
	case "GetAuthorizationToken":
		f.tokens++
		return map[string]any{"authorizationData": []any{map[string]any{"authorizationToken": base64.StdEncoding.EncodeToString([]byte("AWS:" + password(f.tokens))),
			"expiresAt": 4e9, "proxyEndpoint": f.server.URL}}}, nil
	case "DescribeRepositories":
		all := []any{}
		for _, name := range in.RepositoryNames {
			if !f.repositories[name] {
				return nil, f.absent(name)
			}
			all = append(all, map[string]any{"repositoryName": name, "registryId": Account, "repositoryUri": f.Host + "/" + name,
				"repositoryArn": "arn:aws:ecr:" + f.region + ":" + Account + ":repository/" + name})
		}
		return map[string]any{"repositories": all}, nil
	case "DescribeImages":
		if !f.repositories[in.RepositoryName] {
			return nil, f.absent(in.RepositoryName)
		}
		all := []any{}
		for _, id := range in.ImageIds {
			digest := f.tags[in.RepositoryName][id.ImageTag]
			if digest == "" {
				return nil, &Error{"ImageNotFoundException", fmt.Sprintf("The image with imageId {imageDigest:'null', imageTag:'%s'} does not exist within the repository with name '%s' in the registry with id '%s'", id.ImageTag, in.RepositoryName, Account)}
			}
			all = append(all, map[string]any{"repositoryName": in.RepositoryName, "registryId": Account, "imageDigest": digest, "imageTags": []string{id.ImageTag}})
		}
		return map[string]any{"imageDetails": all}, nil
	}
	return nil, &Error{"UnknownOperationException", "unknown: " + call}
}

func (f *Fake) absent(name string) *Error {
	return &Error{"RepositoryNotFoundException", fmt.Sprintf("The repository with name '%s' does not exist in the registry with id '%s'", name, Account)}
}

// of takes the path of a registry's API apart.
var of = regexp.MustCompile(`^/v2/(.+)/(?:manifests|blobs)/(?:uploads/?)?(.*)$`)

// serve is the registry, in front of which ECR looks who asks and for what.
func (f *Fake) serve(w http.ResponseWriter, r *http.Request) {
	user, word, _ := r.BasicAuth()
	f.mu.Lock()
	known, old := false, false
	for n := 1; n <= f.tokens; n++ {
		if user == "AWS" && word == password(n) {
			known, old = true, n < f.oldest
		}
	}
	m := of.FindStringSubmatch(r.URL.Path)
	there := m == nil || f.repositories[m[1]]
	f.mu.Unlock()
	status, code, says := 0, "DENIED", ""
	switch {
	case old:
		status, says = http.StatusForbidden, "Your authorization token has expired. Reauthenticate and try again."
	case !known:
		w.Header().Set("Www-Authenticate", `Basic realm="`+f.server.URL+`/",service="ecr.amazonaws.com"`)
		status, code, says = http.StatusUnauthorized, "UNAUTHORIZED", "Not Authorized"
	case !there:
		status, code, says = http.StatusNotFound, "NAME_UNKNOWN", fmt.Sprintf("The repository with name '%s' does not exist in the registry with id '%s'", m[1], Account)
	case f.Deny != nil:
		status, says = f.Deny(r.Method, r.URL.Path)
	}
	if status != 0 {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"errors": []any{map[string]string{"code": code, "message": says}}})
		return
	}
	if r.Method != http.MethodPut || m == nil || !strings.Contains(r.URL.Path, "/manifests/") {
		f.handler.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	rec := httptest.NewRecorder()
	f.handler.ServeHTTP(rec, r)
	if digest := rec.Header().Get("Docker-Content-Digest"); rec.Code == http.StatusCreated && !strings.HasPrefix(m[2], "sha256:") {
		f.mu.Lock()
		if f.tags[m[1]] == nil {
			f.tags[m[1]] = map[string]string{}
		}
		f.tags[m[1]][m[2]] = digest
		f.pushes = append(f.pushes, m[1]+":"+m[2])
		f.mu.Unlock()
	}
	for key, values := range rec.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes())
}
