//go:build linux

package host

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/dlwb/dlwb/internal/hostclaim"
	"github.com/dlwb/dlwb/remote/agent/runs"
)

// Pair writes what the nodes of a cluster need to reach each other: files of
// ~/.dlwb by their names, each whole or not at all, and the line that lets the
// others in. The life is that of a cluster that is not the first in this home, whose files
// have it in their names; else it is empty.
func (h *Host) Pair(life string, files map[string]string, authorized string) error {
	if !strings.HasPrefix(authorized, hostclaim.PeerLine) || strings.ContainsAny(authorized, "\n\r") {
		return fmt.Errorf("%.80q is no line for the other nodes", authorized)
	}
	if life != "" && !h.claimOf(life).Held() {
		return fmt.Errorf("life %.60q has no host here", life)
	}
	for name, text := range files {
		if err := whole(h.at(filepath.Join(".dlwb", runs.OfLife(name, life))), text, 0o600); err != nil {
			return err
		}
	}
	if life != "" {
		authorized += ofLife(life)
	}
	if len(h.claims()) > 0 { // another cluster may just be taking its own line out
		defer h.leave("pair."+rand.Text(), leavingMost)()
	}
	return addLine(h.at(".ssh/authorized_keys"), authorized)
}

// whole writes a file of ours in one step.
func whole(path, text string, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil && mode&0o100 != 0 {
		err = unix.Access(f.Name(), unix.X_OK) // not where programs are not executed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// Uninstall removes ~/.dlwb, the lines that let other nodes in, and directories
// below the home directory, with those around them that are empty then. It
// refuses while processes of a run live.
func (h *Host) Uninstall(dirs []string) error {
	for _, dir := range dirs {
		if !filepath.IsLocal(dir) || filepath.Clean(dir) == "." {
			return fmt.Errorf("%q is not a directory below the home", dir)
		}
	}
	live := h.live()
	for _, run := range live {
		return fmt.Errorf("run %s has live processes (%d in all runs): stop it first", filepath.Base(run), len(live))
	}
	keys := h.at(".ssh/authorized_keys")
	if err := removeLines(keys, forPeers); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, dir := range append([]string{".dlwb"}, dirs...) {
		if err := removeAll(h.at(dir)); err != nil {
			return err
		}
		if parent := filepath.Dir(dir); parent != "." {
			_ = os.Remove(h.at(parent)) // when it is empty
		}
	}
	h.removeAgents()
	return nil
}
