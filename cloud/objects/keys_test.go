package objects

import (
	"bytes"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// lay puts objects by their keys below the prefix, as anybody with another tool can.
func lay(t *testing.T, b *Bucket, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if _, err := b.s3.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &b.name, Key: aws.String(b.prefix + "/" + key), Body: bytes.NewReader([]byte(key))}); err != nil {
			t.Fatal(err)
		}
	}
}

// lie are the keys below the prefix.
func lie(t *testing.T, b *Bucket) (keys []string) {
	t.Helper()
	out, err := b.s3.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &b.name, Prefix: aws.String(b.prefix + "/")})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range out.Contents {
		keys = append(keys, aws.ToString(o.Key)[len(b.prefix)+1:])
	}
	return keys
}

// Keys are what they are: one with "..", or with two slashes, is removed itself, and
// nothing else is.
func TestOnlyTheKeysThatAreListedAreRemoved(t *testing.T) {
	others := []string{"other", "run/ckpt/000002.manifest.json", "run/ckpt/000002/model", "run/ckpt/a/b", "run/keep"}
	for what, c := range map[string]struct {
		laid, left []string
		do         func(b *Bucket) error
	}{
		"drop": {[]string{"run/ckpt/000001.manifest.json", "run/ckpt/000001/../../../other", "run/ckpt/000001//../../a/b", "run/ckpt/000001/./x", "run/ckpt/000001/a//b"}, nil,
			func(b *Bucket) error { return b.Drop(t.Context(), "run/ckpt/000001") }},
		"sweep": {[]string{"run/ckpt/000001/../../../other", "run/ckpt/000001/a//b"}, nil,
			func(b *Bucket) error { return b.SweepSets(t.Context(), "run/ckpt") }},
		"sweep of what is no set": {[]string{"run/ckpt/../x", "run/ckpt//x", "run/ckpt/./x"}, []string{"run/ckpt/../x", "run/ckpt/./x", "run/ckpt//x"},
			func(b *Bucket) error { return b.SweepSets(t.Context(), "run/ckpt") }},
	} {
		t.Run(what, func(t *testing.T) {
			address, _ := server(t)
			b := open(t, address)
			lay(t, b, append(c.laid, others...)...)
			lay(t, b, "run/ckpt/a.manifest.json")
			want := slices.Sorted(slices.Values(append(c.left, append(others, "run/ckpt/a.manifest.json")...)))
			if err := c.do(b); err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(slices.Values(lie(t, b))); !slices.Equal(got, want) {
				t.Errorf("left is\n%q, want\n%q", got, want)
			}
		})
	}
}

// A file of a set may be called as manifests are. It is no further set.
func TestAFileThatIsCalledLikeAManifestIsNoSet(t *testing.T) {
	address, _ := server(t)
	b := open(t, address)
	files := write(t, 1)
	files["shards.manifest.json"], files["000009.manifest.json"] = files["config.json"], files["config.json"]
	if _, err := b.Save(t.Context(), "run/ckpt/000001", files, nil); err != nil {
		t.Fatal(err)
	}
	lay(t, b, "run/ckpt/.manifest.json", "run/ckpt/...manifest.json", "run/ckpt//000003.manifest.json")
	if sets, err := b.Sets(t.Context(), "run/ckpt"); err != nil || !slices.Equal(sets, []string{"run/ckpt/000001"}) {
		t.Errorf("%v %v", sets, err)
	}
}
