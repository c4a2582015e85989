package options

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/nearword"
	"github.com/dlwb/dlwb/internal/pattern"
)

// The ways in which a channel is read.
const (
	File     = "file"
	FastFile = "fastfile"
	Pipe     = "pipe"
)

// Modes are the words of machines.input_mode.
var Modes = []string{File, FastFile, Pipe}

// Channel is something that a job reads.
type Channel struct {
	Name     string
	S3       string // s3://…; empty: a file system
	Manifest bool   // S3 names a list of objects
	Mode     string // empty: that of the job
	Sharded  bool
	Gzip     bool
	// FileSystem is the id of one of EFS or FSx for Lustre, which Kind says.
	FileSystem string
	Kind       string // "EFS" or "FSxLustre"
	Dir        string
	Writable   bool
}

// Where is what the channel reads.
func (c Channel) Where() string {
	if c.S3 != "" {
		return c.S3
	}
	return fmt.Sprintf("%s of the file system %s (%s)", c.Dir, c.FileSystem, c.Kind)
}

// reserved are the channels that are dlwb's and the official SDK's own.
var reserved = []string{"dlwb", "code", "sm_drivers"}

var (
	channelForm = pattern.New(`^[A-Za-z0-9.\-_]{1,64}$`)
	systemForm  = pattern.New(`^fs-[0-9a-f]{8,17}$`)
	bucketForm  = pattern.New(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
)

var channelWords = []string{File, FastFile, Pipe, "sharded", "replicated", "gzip", "manifest", "ro", "rw"}

// ParseChannel reads NAME=SOURCE[,WORD]….
func ParseChannel(text string) (c Channel, err error) {
	name, rest, found := strings.Cut(text, "=")
	words := strings.Split(rest, ",")
	c.Name = name
	switch {
	case !found || !channelForm.MatchString(name):
		return c, fmt.Errorf("%q does not begin with the name of a channel and =", text)
	case slices.Contains(reserved, name):
		return c, fmt.Errorf("%q: a channel of that name is there already", text)
	}
	if err := c.source(words[0]); err != nil {
		return c, fmt.Errorf("%q: %w", text, err)
	}
	for _, word := range words[1:] {
		if err := c.word(word); err != nil {
			return c, fmt.Errorf("%q: %w", text, err)
		}
	}
	if c.FileSystem != "" && (c.Mode != "" && c.Mode != File || c.Sharded || c.Gzip || c.Manifest) {
		return c, fmt.Errorf("%q: a file system is read as files, by all machines", text)
	}
	if c.Mode == FastFile && c.Gzip {
		return c, fmt.Errorf("%q: fastfile gives objects as they are: gzip needs file or pipe", text)
	}
	return c, nil
}

func (c *Channel) source(text string) error {
	if strings.HasPrefix(text, "s3://") {
		_, _, err := S3(text)
		c.S3 = text
		return err
	}
	kind, rest, _ := strings.Cut(text, "/")
	id, dir, _ := strings.Cut(rest, "/")
	c.Kind = map[string]string{"efs": "EFS", "fsx": "FSxLustre"}[kind]
	if c.Kind == "" || !systemForm.MatchString(id) {
		return fmt.Errorf("%q is neither s3://bucket/prefix nor efs/ID/dir nor fsx/ID/dir", text)
	}
	c.FileSystem, c.Dir = id, path.Join("/", dir)
	return nil
}

func (c *Channel) word(word string) error {
	switch word {
	case File, FastFile, Pipe:
		c.Mode = word
	case "sharded":
		c.Sharded = true
	case "gzip":
		c.Gzip = true
	case "manifest":
		c.Manifest = true
	case "rw":
		c.Writable = true
	case "replicated", "ro":
	default:
		if near := nearword.Nearest(word, channelWords); near != "" {
			return fmt.Errorf("there is no word %q: did you mean %s?", word, near)
		}
		return fmt.Errorf("there is no word %q", word)
	}
	return nil
}

// S3 takes s3://bucket/key apart; the key has no slash at its end.
func S3(text string) (bucket, key string, err error) {
	rest, is := strings.CutPrefix(text, "s3://")
	bucket, key, _ = strings.Cut(rest, "/")
	if !is || !bucketForm.MatchString(bucket) {
		return "", "", fmt.Errorf("%q is no place in S3", text)
	}
	return bucket, strings.TrimRight(key, "/"), nil
}
