//go:build linux

package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/hostclaim"
)

// Many hosts may have one home directory, and each is had by one cluster. So each host
// that is taken has a file there which says by whom. Beside these is the one file that
// older versions know, which says that the home is in use: it names the cluster that came
// first. Where there is nothing but that, an older version has taken the whole home.
//
// The key by which the nodes of the first cluster reach each other has the names that older
// versions know. One that came later stands beside it, and has its life in the names of its
// key and at the end of its line in authorized_keys: each goes with its life. When the first
// goes, another one takes its place, and keeps the names that it has.

// claimsDir holds a file for each host that is taken, with the claim.
const claimsDir = ".dlwb/claims"

// hostID is the name of this host's file.
func hostID() string {
	id, _ := os.ReadFile("/etc/machine-id") // a container may have none
	name, _ := os.Hostname()
	sum := sha256.Sum256(append(id, name...))
	return hex.EncodeToString(sum[:8])
}

func (h *Host) claimFile() string { return h.at(filepath.Join(claimsDir, h.id)) }

// readClaim reads a claim; the zero Claim: there is none.
func readClaim(path string) hostclaim.Claim {
	b, err := os.ReadFile(path)
	if err != nil {
		return hostclaim.Claim{}
	}
	return hostclaim.Parse(string(b[:min(len(b), claimMost)]))
}

// first is the claim of the cluster that came first.
func (h *Host) first() hostclaim.Claim { return readClaim(h.at(hostclaim.File)) }

// claims are those of all hosts with this home, by host.
func (h *Host) claims() map[string]hostclaim.Claim {
	all := h.claimsAndComing()
	maps.DeleteFunc(all, func(name string, _ hostclaim.Claim) bool { return isComing(name) })
	return all
}

// claimsAndComing are the claims, and those that are about to become some, by their files.
func (h *Host) claimsAndComing() map[string]hostclaim.Claim {
	all := map[string]hostclaim.Claim{}
	entries, _ := os.ReadDir(h.at(claimsDir))
	for _, e := range entries {
		if c := readClaim(h.at(filepath.Join(claimsDir, e.Name()))); c.Held() && check(c) == nil {
			all[e.Name()] = c
		}
	}
	return all
}

// comingFile says beside the claims that a life is about to have this host. It has nothing
// in the home yet, and may still turn away: nothing is handed over to it. But whoever leaves
// is not the last one then.
func (h *Host) comingFile(life string) string { return h.claimFile() + "." + life + comingEnd }

const comingEnd = ".coming"

func isComing(name string) bool { return strings.HasSuffix(name, comingEnd) }

// claim says who has this host; the zero Claim: nobody.
func (h *Host) claim() hostclaim.Claim {
	if c, taken := h.claims()[h.id]; taken {
		return c
	}
	return h.older()
}

// older is the claim by which an older version has the whole home. Who comes writes his
// host's file first, and who leaves removes it last: one that is missed once may just be
// leaving, and the home is another's at the next look.
func (h *Host) older() (c hostclaim.Claim) {
	for {
		seen := c.Life
		if c = h.first(); !c.Held() || hasLife(h.claims(), c.Life) {
			return hostclaim.Claim{}
		}
		if c.Life == seen {
			return c
		}
	}
}

func hasLife(all map[string]hostclaim.Claim, life string) bool {
	for _, c := range all {
		if c.Life == life {
			return true
		}
	}
	return false
}

// claimOf is what a life has in this home.
func (h *Host) claimOf(life string) hostclaim.Claim {
	for _, c := range h.claims() {
		if c.Life == life {
			return c
		}
	}
	if c := h.first(); c.Life == life {
		return c
	}
	return hostclaim.Claim{}
}

// inTheWay is the claim that keeps a life from this host: of another that has it, or of a
// namesake elsewhere in the home, whose code would lie in the same place.
func (h *Host) inTheWay(want hostclaim.Claim) (by hostclaim.Claim, namesake bool) {
	if c := h.claim(); c.Held() && c.Life != want.Life {
		return c, false
	}
	for _, c := range h.claims() {
		if c.Cluster == want.Cluster && c.Life != want.Life {
			return c, true
		}
	}
	if c := h.older(); c.Life != want.Life {
		return c, false // it was faster
	}
	return hostclaim.Claim{}, false
}

// files are those of a claim, as the home directory has them.
func (h *Host) files(c hostclaim.Claim) (names []string) {
	all := h.claims()
	for _, host := range sortedKeys(all) {
		if all[host].Life == c.Life {
			names = append(names, filepath.Join(claimsDir, host))
		}
	}
	if h.first().Life == c.Life {
		names = append(names, hostclaim.File)
	}
	return names
}

// handOver takes a life out of the file that names the first cluster: another one stands
// there then, if there is one. The caller is the only one who leaves.
func (h *Host) handOver(life string) {
	file := h.at(hostclaim.File)
	if h.first().Life != life {
		return
	}
	if next := h.otherThan(life); next.Held() && whole(file, next.Text(), 0o600) == nil {
		return
	}
	_ = os.Remove(file)
	if next := h.otherThan(life); next.Held() { // it came just now, and found the file still there
		_, _ = h.write(file, next.Life, next.Text())
	}
}

// otherThan is a claim of another life; the zero Claim: there is none.
func (h *Host) otherThan(life string) hostclaim.Claim {
	all := h.claims()
	for _, host := range sortedKeys(all) {
		if all[host].Life != life {
			return all[host]
		}
	}
	return hostclaim.Claim{}
}

// unclaim removes the files of the hosts of a life.
func (h *Host) unclaim(life string) {
	for name, c := range h.claimsAndComing() {
		if c.Life == life {
			_ = os.Remove(h.at(filepath.Join(claimsDir, name)))
		}
	}
	_ = os.Remove(h.at(claimsDir)) // where it is empty
}

// withdraw undoes what arrive has done, as one who leaves: handOver names none that is just
// turning away. Other hosts of the life stay.
func (h *Host) withdraw(c hostclaim.Claim) {
	defer h.leave(c.Life, leavingMost)()
	others := h.claims()
	delete(others, h.id)
	if !hasLife(others, c.Life) {
		h.handOver(c.Life)
	}
	_ = os.Remove(h.claimFile())
	_ = os.Remove(h.at(claimsDir)) // where it is empty
}

func sortedKeys(all map[string]hostclaim.Claim) (names []string) {
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// leavingFile says that somebody empties ~/.dlwb: whoever comes waits, and whoever leaves,
// too.
const leavingFile = ".dlwb/leaving"

const (
	// leavingMost is how long one who has begun to leave may take before he is held to
	// have been killed.
	leavingMost = time.Minute
	// arriveMost is how long one who comes waits.
	arriveMost = 12 * time.Second
)

// leave begins to leave; done ends it. Another who has begun to may take so long at most.
func (h *Host) leave(life string, most time.Duration) (done func()) {
	file := h.at(leavingFile)
	began, seen := time.Now(), ""
	for {
		err := exclusive(file, life)
		text, _ := os.ReadFile(file)
		switch {
		case !errors.Is(err, fs.ErrExist), string(text) == life: // one that was interrupted goes on
			return func() { _ = os.Remove(file) }
		case string(text) != seen:
			began, seen = time.Now(), string(text)
		case time.Since(began) > most:
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return func() {} // nobody could wait for that
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// arrive writes the claim of this host, at no moment at which somebody empties the
// directory: who leaves looks for others after he has said so, and who comes looks for that
// after he has said that he comes. A claim that is there once stays until its life leaves:
// what names the first cluster is written by those who leave, from the claims that they see.
func (h *Host) arrive(want hostclaim.Claim) (fresh bool, err error) {
	if exists(h.claimFile()) {
		return false, nil
	}
	coming := h.comingFile(want.Life)
	_ = os.Remove(coming) // of one that was killed
	if _, err := h.write(coming, want.Life, want.Text()); err != nil {
		return false, err
	}
	defer func() {
		_ = os.Remove(coming)
		_ = os.Remove(h.at(claimsDir)) // where it is empty
	}()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		leaving, err := os.Stat(h.at(leavingFile))
		if err != nil {
			break
		}
		if mine, err := os.Stat(coming); err == nil && mine.ModTime().Sub(leaving.ModTime()) > 2*leavingMost {
			_ = os.Remove(h.at(leavingFile)) // he was killed
			break
		}
		if time.Since(began) > arriveMost {
			return false, fmt.Errorf("another cluster's hosts, which have the same home, are just being given back: try again in a minute")
		}
	}
	return h.write(h.claimFile(), want.Life, want.Text())
}

// isMeetingOf reports whether a meeting was one of a life, or of an older version.
func isMeetingOf(name, life string) bool {
	_, of, has := strings.Cut(name, ".")
	return !has || of == life
}
