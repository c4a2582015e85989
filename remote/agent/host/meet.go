//go:build linux

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/hostclaim"
)

// Hosts that share a directory find that out by trying: each leaves a file with its
// own number, and looks for those of the others. What a table of mounts says of it is
// not asked: GPFS, BeeGFS and bind mounts look like any disk there. Nobody has looked
// for these names before, so that no answer of a network file system is an old one.

// meetDir holds the marks, one directory for each meeting.
const meetDir = ".dlwb/meet"

// meetMost bounds a meeting.
const meetMost = 4096

// marked are the two places of a meeting: in the home directory, and where the code
// of a cluster comes to lie.
func (h *Host) marked(r hostclaim.Request) (home, code string, err error) {
	if r.Meeting == "" || r.Meeting != filepath.Base(r.Meeting) || strings.HasPrefix(r.Meeting, ".") || r.Among > meetMost {
		return "", "", fmt.Errorf("%.60q is no meeting", r.Meeting)
	}
	return h.at(filepath.Join(meetDir, r.Meeting+"."+r.Life)), h.at(filepath.Join("dlwb", r.Cluster, ".dlwb-meet", r.Meeting)), nil
}

// mark leaves this host's mark in both places. Marks of the life's earlier meetings go.
func (h *Host) mark(r hostclaim.Request) error {
	home, code, err := h.marked(r)
	if err != nil {
		return err
	}
	for _, dir := range []string{home, code} {
		if err := makeAll(dir); err != nil {
			return err
		}
		entries, _ := os.ReadDir(filepath.Dir(dir))
		for _, e := range entries {
			if e.Name() != filepath.Base(dir) && isMeetingOf(e.Name(), r.Life) {
				_ = removeAll(filepath.Join(filepath.Dir(dir), e.Name()))
			}
		}
		if err := writeMark(filepath.Join(dir, strconv.Itoa(r.Number)), r.Number); err != nil {
			return err
		}
	}
	return nil
}

// writeMark puts a mark on the disk, or on the server.
func writeMark(path string, number int) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.Itoa(number))
	return errors.Join(err, f.Sync(), f.Close())
}

// seek tells whose marks are in the two places. All have left theirs by now.
func (h *Host) seek(r hostclaim.Request) (a hostclaim.Answer, err error) {
	home, code, err := h.marked(r)
	if err != nil {
		return a, err
	}
	a.Claim = h.claim()
	a.Homes, a.Codes = marksIn(home, r.Among), marksIn(code, r.Among)
	for _, seen := range [][]int{a.Homes, a.Codes} {
		if len(seen) == 0 {
			return a, fmt.Errorf("the mark of this host is not there any more: its file system loses what is written")
		}
	}
	return a, nil
}

// markPatience is how long a mark that is there may still be empty.
const markPatience = 2 * time.Second

// marksIn are the numbers of the hosts that have left a mark in a directory.
func marksIn(dir string, among int) (seen []int) {
	deadline := time.Now().Add(markPatience)
	for i := range among {
		for {
			text, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(i)))
			if err == nil && string(text) == strconv.Itoa(i) {
				seen = append(seen, i)
			}
			if errors.Is(err, fs.ErrNotExist) || len(text) > 0 || time.Now().After(deadline) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return seen
}
