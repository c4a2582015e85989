//go:build linux

package testbed

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Share mounts one directory of this machine at a path of some hosts, and gives it: what
// one of them writes there the others see. It is a bind mount, of which no table of
// mounts says that it is shared. Who logs in owns it.
func (b *Bed) Share(name, at string, hosts ...int) (string, error) {
	dir := filepath.Join(b.dir, "store", "shared-"+name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if err := os.Chown(dir, userID, userID); err != nil {
		return "", err
	}
	for _, i := range hosts {
		if _, err := b.Run(i, "mkdir -p '"+at+"'"); err != nil {
			return "", err
		}
		if err := b.mount(dir, at, i); err != nil {
			return "", fmt.Errorf("mount %s on %s: %w", dir, Name(i), err)
		}
	}
	return dir, nil
}

// ShareHome has some hosts mount one home directory of the user, with the files of the
// first one's.
func (b *Bed) ShareHome(hosts ...int) (string, error) {
	home := "/home/" + User
	dir, err := b.Share("home", home+"-shared", hosts...)
	if err != nil {
		return "", err
	}
	if _, err := b.Run(hosts[0], fmt.Sprintf("cp -a %[1]s/. %[1]s-shared/", home)); err != nil {
		return "", err
	}
	for _, i := range hosts {
		if err := b.mount(dir, home, i); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// userID is the number of User.
const userID = 1000

// mount mounts a directory of this machine in the mount namespace of a host, which
// does not see it by a path: as a mount that is nowhere, and is moved there.
func (b *Bed) mount(dir, at string, host int) error {
	text, err := os.ReadFile(filepath.Join(b.dir, "n", strconv.Itoa(host+1), "pid"))
	if err != nil {
		return err
	}
	tree, err := unix.OpenTree(unix.AT_FDCWD, dir, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(tree) }()
	space, err := os.Open("/proc/" + strings.TrimSpace(string(text)) + "/ns/mnt")
	if err != nil {
		return err
	}
	defer func() { _ = space.Close() }()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with this, in the other namespace
		err := unix.Unshare(unix.CLONE_FS)
		if err == nil {
			err = unix.Setns(int(space.Fd()), unix.CLONE_NEWNS)
		}
		if err == nil {
			err = unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH)
		}
		done <- err
	}()
	return <-done
}
