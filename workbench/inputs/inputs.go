// Package inputs brings to every node of a cluster what a run reads besides its
// code: named channels, and the state that survives runs. What has an address is
// fetched once, by node 0, and the nodes pass it on.
package inputs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/internal/secretfile"
	"github.com/dlwb/dlwb/internal/units"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote"
	"github.com/dlwb/dlwb/remote/transfer"
	"github.com/dlwb/dlwb/workbench/event"
	"github.com/dlwb/dlwb/workbench/sharing"
)

// Channel is an input on its way to the nodes.
type Channel struct {
	profiles.Channel
	Path string // here; empty for one that is fetched by its address
}

// Site is where channels are brought to.
type Site struct {
	Cluster string
	Nodes   []*remote.Node
	Disks   sharing.Nodes // which of them see one disk; none: nobody does
	// Python starts an interpreter on a node.
	Python func(node int) []string
	// Cache is the directory here for the checksums of what was sent.
	Cache string
	// Say tells progress of a node.
	Say func(node int, text string)
	// Warn tells what a person should know besides.
	Warn func(text, next string)
}

// Dir is where the channels of a cluster lie on a node, below its home.
func Dir(cluster string) string { return "dlwb/" + cluster + "/inputs" }

// StateDir is where the state of a cluster lies on a node, below its home. Each node
// has one of its own, also on a disk that it shares.
func StateDir(cluster string, disks sharing.Nodes, node int) string {
	return disks.OwnDir("dlwb/"+cluster+"/state", max(node, 0))
}

func (s Site) dir(c Channel) string { return Dir(s.Cluster) + "/" + c.Name }

// Of are the channels of a profile.
func Of(p *profiles.Profile) (all []Channel) {
	for _, c := range p.Data {
		all = append(all, Channel{Channel: c, Path: p.ChannelPath(c)})
	}
	return all
}

// Bring brings channels to every node. It says what came, and whether that was
// nothing because all of it was there.
func (s Site) Bring(ctx context.Context, all []Channel) (text string, unchanged bool, err error) {
	unchanged = true
	var parts []string
	for _, c := range all {
		said, same, err := s.one(ctx, c)
		if err != nil {
			return "", false, err
		}
		parts = append(parts, c.Name+": "+said)
		unchanged = unchanged && same
	}
	return strings.Join(parts, "; "), unchanged, nil
}

func (s Site) one(ctx context.Context, c Channel) (text string, unchanged bool, err error) {
	if c.Path != "" {
		return s.send(ctx, c)
	}
	return s.fetch(ctx, c)
}

// send copies what lies on this machine, as the code is copied: what a node has is
// not sent again, and nodes pass on what is large.
func (s Site) send(ctx context.Context, c Channel) (text string, unchanged bool, err error) {
	fail := func(why error, next string) (string, bool, error) {
		return "", false, &event.Fault{What: "bring the channel " + c.Name, Node: -1, Why: why.Error(), Next: next}
	}
	st, err := os.Stat(c.Path)
	if err != nil {
		return fail(err, "")
	}
	// A data set is sent whatever ignore files say: they speak of the code.
	dir, rules := c.Path, transfer.Rules{Exclude: []string{"!*"}}
	if !st.IsDir() {
		if err := checkSum(c); err != nil {
			return fail(err, "is it the right file? sha256 of the profile says which one is")
		}
		dir, rules.Exclude = filepath.Dir(c.Path), []string{"*", "!/" + literal(filepath.Base(c.Path))}
	}
	tree, err := transfer.Scan(ctx, dir, rules)
	if err != nil {
		return fail(err, "")
	}
	if tree.Files == 0 {
		return fail(fmt.Errorf("there is nothing to send in %s", c.Path), "a file that looks like a secret is not sent: dlwb help settings")
	}
	tree.HashCache = filepath.Join(s.Cache, s.Cluster+"-"+c.Name)
	if held := tree.HeldBack(); held != "" {
		s.Warn("channel "+c.Name+": "+held, "")
	}
	res, err := s.Disks.Sync(ctx, s.Nodes, tree, s.dir(c), func(node int, text string) { s.Say(node, c.Name+": "+text) })
	if err != nil {
		return fail(err, "")
	}
	if res.Files == 0 && res.Removed == 0 {
		return "unchanged, " + event.SizeText(tree.Files, tree.Bytes), true, nil
	}
	return res.String(), false, nil
}

// literal is a name as a pattern of an ignore file that matches it alone.
func literal(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

// checkSum holds a file against the checksum that the profile names.
func checkSum(c Channel) error {
	if c.SHA256 == "" {
		return nil
	}
	sum, err := SumOf(c.Path)
	if err == nil && sum != c.SHA256 {
		err = fmt.Errorf("%s has the SHA-256 %s, and the profile says %s", c.Path, sum, c.SHA256)
	}
	return err
}

// SumOf is the SHA-256 of a file, in hex.
func SumOf(path string) (string, error) {
	f, err := plainfile.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Identity says what channels are made of now, so that a change can be told: files
// here by their sizes and times, objects in S3 by their ETags, other addresses by
// themselves.
func Identity(ctx context.Context, all []Channel) (string, error) {
	h := sha256.New()
	for _, c := range all {
		fmt.Fprintf(h, "%q %q %q\n", c.Name, c.From, c.SHA256)
		if c.inS3() {
			_, l, err := list(ctx, c, listLimit)
			if err != nil {
				f := cloud.FromError("", err, "aws s3 ls "+c.From)
				return "", &event.Fault{What: "list the channel " + c.Name, Node: -1, Why: f.Text, Next: f.Next}
			}
			fmt.Fprintln(h, digest(c.From, l.Objects))
		}
		if c.Path == "" {
			continue
		}
		var lines []string
		// As it is sent: a link at its top is what it leads to.
		root, err := filepath.EvalSymlinks(c.Path)
		if err != nil {
			return "", err
		}
		err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(root, path)
			lines = append(lines, fmt.Sprintf("%q %d %d", filepath.ToSlash(rel), info.Size(), info.ModTime().UnixNano()))
			return nil
		})
		if err != nil {
			return "", err
		}
		slices.Sort(lines)
		fmt.Fprintln(h, strings.Join(lines, "\n"))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Text describes channels in a line, for a plan.
func Text(all []Channel) []string {
	var lines []string
	for _, c := range all {
		from := secretfile.Address(c.From)
		if c.Path != "" {
			from = c.Path
			if st, err := os.Stat(c.Path); err == nil && !st.IsDir() {
				from += ", " + units.Bytes(st.Size())
			}
		}
		if c.SHA256 != "" {
			from += ", SHA-256 checked"
		}
		if c.Most > 0 && c.Path == "" {
			from += ", at most " + units.Bytes(c.Most)
		}
		lines = append(lines, c.Name+" from "+from+", as DLWB_CHANNEL_"+c.Variable())
	}
	return lines
}
