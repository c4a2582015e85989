//go:build linux

package host

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/hostclaim"
)

// places are what dlwb writes to below a home directory. What was there before a
// claim stays when the host is given back.
var places = []string{".dlwb", ".ssh", ".ssh/authorized_keys", "dlwb"}

// take takes the host for one life of a cluster, and answers who has it then.
// The file that says so appears whole or not at all, and for one of two only: by
// a hard link, or where there are none by an exclusive write.
func (h *Host) take(r hostclaim.Request) (hostclaim.Answer, error) {
	want := hostclaim.Claim{Cluster: r.Cluster, Life: r.Life, Owner: r.Owner, Since: r.Since, Dir: r.Dir}
	if err := check(want); err != nil {
		return hostclaim.Answer{}, err
	}
	if by, namesake := h.inTheWay(want); by.Held() {
		return hostclaim.Answer{Claim: by, Namesake: namesake, Files: h.files(by)}, nil
	}
	before := h.claimOf(want.Life).Held()
	if want.Dir != "" && !before {
		// Another host of this life may have the same home, or the same directory.
		if err := h.vacant(want); err != nil && !h.claimOf(want.Life).Held() {
			return hostclaim.Answer{}, err
		}
	}
	want.Had = h.thereBefore()
	fresh, err := h.arrive(want)
	if err != nil {
		return hostclaim.Answer{}, err
	}
	if mine := readClaim(h.claimFile()); mine.Life == want.Life {
		if _, err := h.write(h.at(hostclaim.File), want.Life, want.Text()); err != nil {
			return hostclaim.Answer{}, err
		}
	}
	if by, namesake := h.inTheWay(want); by.Held() { // who came at the same moment
		if fresh {
			h.withdraw(want)
		}
		return hostclaim.Answer{Claim: by, Namesake: namesake, Files: h.files(by)}, nil
	}
	a := hostclaim.Answer{New: fresh && !before, Claim: h.claim(), Beside: h.first().Life != want.Life}
	if a.Claim.Life != want.Life {
		return a, nil
	}
	if a.Claim.Dir != "" {
		if err := h.settle(a.Claim); err != nil {
			if fresh {
				h.untake(want)
			}
			return a, err
		}
	}
	if r.Agent != "" {
		_ = h.keepAgent(r.Agent) // else it is brought again
	}
	if r.Meeting != "" {
		return a, h.mark(r)
	}
	return a, nil
}

// thereBefore are the places that were there before dlwb came. Those who are there know it,
// and those who come. Where there are none, it is what is there, if nobody came or went
// while that was looked at.
func (h *Host) thereBefore() (had []string) {
	for range 20 {
		since := h.changed()
		if c := h.anyone(); c.Held() {
			return c.Had
		}
		had = nil
		for _, name := range places {
			if exists(h.at(name)) && (name != ".dlwb" || h.inUse()) {
				had = append(had, name)
			}
		}
		if !h.anyone().Held() && h.changed() == since {
			break
		}
	}
	return had
}

// anyone is a claim of somebody who is in the home or comes; the zero Claim: there is none.
func (h *Host) anyone() hostclaim.Claim {
	for _, c := range h.claimsAndComing() {
		return c
	}
	return h.first()
}

// changed are the times at which something last came into the home or ~/.dlwb, or went.
func (h *Host) changed() (times [2]time.Time) {
	for i, dir := range []string{h.Home, h.at(".dlwb")} {
		if info, err := os.Stat(dir); err == nil {
			times[i] = info.ModTime()
		}
	}
	return times
}

// inUse reports whether ~/.dlwb has more in it than what passes while somebody comes or
// goes.
func (h *Host) inUse() bool {
	entries, err := os.ReadDir(h.at(".dlwb"))
	return err != nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		name := e.Name()
		return name != filepath.Base(leavingFile) && name != filepath.Base(claimsDir) && !strings.HasPrefix(name, "claim.")
	})
}

// keepAgent puts this program where agents lie, if it can be executed there.
func (h *Host) keepAgent(name string) error {
	path := h.at(filepath.Join(".dlwb/bin", name))
	if name != filepath.Base(name) || !strings.HasPrefix(name, "agent-") || exists(path) {
		return nil
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	// One that another host with this home has put there meanwhile may run there: it
	// stays.
	mine := fmt.Sprintf("%s.%s", path, rand.Text())
	defer func() { _ = os.Remove(mine) }()
	if err := whole(mine, string(program), 0o700); err != nil {
		return err
	}
	if err := h.link(mine, path); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Rename(mine, path)
}

// check holds a claim against what its file can say: each field is one line, and
// the name of a cluster is a part of paths.
func check(c hostclaim.Claim) error {
	for _, field := range []string{c.Cluster, c.Life, c.Owner, c.Dir} {
		if strings.ContainsAny(field, "\n\r\x00") || len(field) > 4096 {
			return fmt.Errorf("%.60q can't stand in a claim", field)
		}
	}
	if c.Cluster == "" || c.Cluster != filepath.Base(c.Cluster) || strings.HasPrefix(c.Cluster, ".") || c.Life == "" || c.Life != filepath.Base(c.Life) {
		return fmt.Errorf("%.60q is no name of a cluster, or its life %.60q none of a life", c.Cluster, c.Life)
	}
	return nil
}

// vacant refuses a directory for the code that is somebody's.
func (h *Host) vacant(want hostclaim.Claim) error {
	if info, err := os.Stat(want.Dir); err != nil || !info.IsDir() {
		return fmt.Errorf("%s is no directory there", want.Dir)
	}
	for _, there := range []string{want.Elsewhere(), h.at(filepath.Join("dlwb", want.Cluster))} {
		if exists(there) && !lived(there, want.Life) {
			return fmt.Errorf("%s is there already", there)
		}
	}
	return nil
}

// write makes the file unless there is one; fresh: it did.
func (h *Host) write(file, life, text string) (fresh bool, err error) {
	// Whoever gives the host back at this moment may remove the directory again.
	for range 20 {
		if err = makeAll(filepath.Dir(file)); err != nil {
			return false, err
		}
		if fresh, err = h.writeOnce(file, life, text); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return fresh, err
}

// makeAll makes a directory and those around it, of which somebody else may just be
// removing one that is empty.
func makeAll(dir string) (err error) {
	for range 20 {
		if err = os.MkdirAll(dir, 0o700); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	return err
}

func (h *Host) writeOnce(file, life, text string) (fresh bool, err error) {
	mine, err := os.CreateTemp(h.at(".dlwb"), "claim."+life+".*")
	if err != nil {
		return false, err
	}
	defer func() { _ = os.Remove(mine.Name()) }()
	_, err = mine.WriteString(text)
	if err = errors.Join(err, mine.Close()); err != nil {
		return false, err
	}
	err = h.link(mine.Name(), file)
	switch {
	case errors.Is(err, fs.ErrExist): // also when the answer of a server was lost, and it is ours
		return same(mine.Name(), file), nil
	case err != nil && !errors.Is(err, fs.ErrNotExist): // no hard links here
		if err = exclusive(file, text); errors.Is(err, fs.ErrExist) {
			return false, nil
		}
	}
	return err == nil, err
}

// same reports whether two names are of one file.
func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}

// exclusive writes a new file.
func exclusive(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path)
	}
	return err
}

// lifeFile is the file beside a place for the code that says for which life it was
// made: another host may have the same.
func lifeFile(dir string) string {
	return filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir)+".life")
}

// lived reports whether a directory was made for a life.
func lived(dir, life string) bool {
	text, err := os.ReadFile(lifeFile(dir))
	return err == nil && string(text) == life
}

// settle makes the place for the code in another directory, with a link to it.
// What was there before is nobody's to take. With a home that several hosts have
// the link may be there already, and lead to a disk of this host's own.
func (h *Host) settle(c hostclaim.Claim) error {
	link, dir := h.at(filepath.Join("dlwb", c.Cluster)), c.Elsewhere()
	if err := makePlace(dir, c.Life); err != nil {
		return err
	}
	if err := makeAll(h.at("dlwb")); err != nil {
		return err
	}
	err := os.Symlink(dir, link)
	if to, readErr := os.Readlink(link); errors.Is(err, fs.ErrExist) && readErr == nil && to == dir {
		return nil
	}
	return err
}

// makePlace makes a directory, and says whose it is before.
func makePlace(dir, life string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := whole(lifeFile(dir), life, 0o600); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// untake undoes a claim that was made just now.
func (h *Host) untake(c hostclaim.Claim) {
	_ = os.Remove(c.Elsewhere()) // only when it is empty
	if lived(c.Elsewhere(), c.Life) {
		_ = os.Remove(lifeFile(c.Elsewhere()))
	}
	h.withdraw(c)
	for _, made := range []string{"dlwb", ".dlwb"} {
		if !had(c, made) {
			_ = os.Remove(h.at(made))
		}
	}
}
