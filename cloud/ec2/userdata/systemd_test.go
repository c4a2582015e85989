//go:build linux

package userdata

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// guest begins a systemd on a copy of this computer's files, in namespaces of
// its own: what it powers off is that guest. $1 is a directory for it.
const guest = `set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
mkdir /mnt/up /mnt/work /mnt/root
mount -t overlay overlay -o lowerdir=/,upperdir=/mnt/up,workdir=/mnt/work /mnt/root
cd /mnt/root
mount -t proc proc proc
mount -t sysfs sysfs sys
for dir in sys/fs/cgroup run tmp dev; do mount -t tmpfs tmpfs $dir; done
mount -t cgroup2 none sys/fs/cgroup
for node in null zero random urandom tty; do touch dev/$node; mount --bind /dev/$node dev/$node; done
rm -rf etc/systemd/system var/lib/dlwb
mkdir -p dev/pts dev/shm etc/systemd/system var/lib/dlwb
mount --bind "$1" var/lib/dlwb
cat >etc/systemd/system/first.service <<'END'
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/sh /var/lib/dlwb/boot
END
printf '[Unit]\nWants=first.service\n' >etc/systemd/system/test.target
exec chroot . env -i container=other PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    "$(command -v /lib/systemd/systemd || echo /usr/lib/systemd/systemd)" --system --unit=test.target --log-target=console
`

// A real systemd gets the very user-data, unchanged: the unit starts, comes
// back when it is killed, and the machine is off when its time is over.
func TestARealSystemdHoldsTheLease(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: only root can begin a guest with a systemd of its own")
	}
	dir := t.TempDir()
	groups := filepath.Join(dir, "cgroup")
	must(t, os.Mkdir(groups, 0o755))
	if out, err := exec.Command("mount", "-t", "cgroup2", "none", groups).CombinedOutput(); err != nil {
		t.Skipf("NOT RUN: no cgroup for a guest: %s", out)
	}
	group := filepath.Join(groups, filepath.Base(filepath.Dir(dir)))
	t.Cleanup(func() {
		_ = exec.Command("find", group, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";").Run()
		_ = exec.Command("umount", "-l", groups).Run()
	})
	must(t, os.Mkdir(group, 0o755))
	lib := filepath.Join(dir, "lib")
	must(t, os.Mkdir(lib, 0o755))
	b := leased(t, Lease{Lifetime: 12 * time.Second})
	program := b.program() + "sleep 4\nsystemctl kill --signal=KILL dlwb-lease.service\n"
	must(t, os.WriteFile(filepath.Join(lib, "boot"), []byte(program), 0o644))
	must(t, os.WriteFile(filepath.Join(dir, "guest"), []byte(guest), 0o644))

	began := time.Now()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `echo $$ >"$1/cgroup.procs" && exec unshare -fmpiuCn --kill-child sh "$2" "$3"`,
		"sh", group, filepath.Join(dir, "guest"), lib)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.CombinedOutput()
	log, _ := os.ReadFile(filepath.Join(lib, "log"))
	if len(log) == 0 {
		t.Skipf("NOT RUN: a guest with systemd can't be begun here: %v: %s", err, out)
	}
	took := time.Since(began)
	t.Logf("the guest was off after %v:\n%s", took, log)
	if n := strings.Count(string(log), "the lease is held"); n != 2 {
		t.Errorf("the lease was begun %d times, want 2", n)
	}
	if !strings.Contains(string(log), "its lifetime ends") || strings.Contains(string(log), "power off, try 2") || took < 10*time.Second || took > 60*time.Second {
		t.Errorf("ended after %v: %s", took, out)
	}
}
