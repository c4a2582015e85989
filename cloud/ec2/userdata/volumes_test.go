//go:build !windows

package userdata

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// diskRig is a machine whose disks are files: blkid, wipefs and mkfs are the real
// ones, lsblk and mount look at the files.
type diskRig struct {
	t             *testing.T
	dir, bin, dev string
	lines         []string // of lsblk
}

const diskSize = 24 << 20

func newDiskRig(t *testing.T) *diskRig {
	t.Helper()
	for _, p := range []string{"blkid", "wipefs", "mkfs.ext4", "mkswap"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Fatalf("this test needs %s: apt-get install -y util-linux e2fsprogs", p)
		}
	}
	r := &diskRig{t: t, dir: t.TempDir()}
	r.bin, r.dev = filepath.Join(r.dir, "bin"), filepath.Join(r.dir, "dev")
	for _, d := range []string{r.bin, r.dev} {
		must(t, os.Mkdir(d, 0o755))
	}
	for _, p := range []string{"sh", "sed", "grep", "cat", "mkdir", "rm", "chmod", "tr", "sleep", "head", "dd", "sha256sum", "echo", "blkid", "wipefs", "mkfs.ext4"} {
		at, err := exec.LookPath(p)
		must(t, err)
		must(t, os.Symlink(at, filepath.Join(r.bin, p)))
	}
	r.shim("mount", `echo "$*" >>"$DLWB_DIR/mounts"`)
	r.shim("lsblk", `case "$*" in
*-bdnP*) cat "$DLWB_DIR/lsblk" ;;
*FSTYPE*) for a; do :; done; blkid -p -o value -s TYPE "$a"; blkid -p -o value -s PTTYPE "$a"; exit 0 ;;
esac`)
	return r
}

// shim puts a program of the rig's in the place of one of the machine's.
func (r *diskRig) shim(name, text string) {
	r.t.Helper()
	must(r.t, errRemoved(os.Remove(filepath.Join(r.bin, name))))
	if text != "" {
		must(r.t, testprogram.Write(filepath.Join(r.bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	}
}

func errRemoved(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// disk adds one with a content.
func (r *diskRig) disk(name, serial, model string, content []byte) string {
	r.t.Helper()
	at := filepath.Join(r.dev, name)
	f, err := os.Create(at)
	must(r.t, err)
	_, err = f.Write(content)
	must(r.t, err)
	must(r.t, f.Truncate(diskSize))
	must(r.t, f.Close())
	r.lines = append(r.lines, fmt.Sprintf(`NAME="%s" SERIAL="%s" SIZE="%d" TYPE="disk" MODEL="%s"`, name, serial, diskSize, model))
	return at
}

// sum is that of what a disk holds. Some have a GiB, so they are not read as one.
func sum(t *testing.T, at string) [sha256.Size]byte {
	t.Helper()
	f, err := os.Open(at)
	must(t, err)
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	must(t, err)
	return [sha256.Size]byte(h.Sum(nil))
}

// boot runs the script, and gives what it mounted and what failed.
func (r *diskRig) boot(shell string, volumes ...Volume) (mounts, failed string) {
	r.t.Helper()
	var lines []string
	for _, v := range volumes {
		v.Path = r.dir + v.Path
		lines = append(lines, v.line())
	}
	r.write("lsblk", strings.Join(r.lines, "\n")+"\n")
	r.write("settings", "volumes='"+strings.Join(lines, "\n")+"'\npatience=0\n")
	r.write("script", script("volumes.sh"))
	args := []string{filepath.Join(r.dir, "script")}
	if shell == "busybox" {
		args = append([]string{"sh"}, args...)
	}
	cmd := exec.Command(shell, args...)
	cmd.Env = []string{"PATH=" + r.bin, "DLWB_DIR=" + r.dir, "DLWB_DEV=" + r.dev}
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	return r.read("mounts"), r.read("boot.failed")
}

func (r *diskRig) write(name, text string) {
	r.t.Helper()
	must(r.t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644))
}

func (r *diskRig) read(name string) string {
	b, _ := os.ReadFile(filepath.Join(r.dir, name))
	return string(b)
}

const ebs, nvme = "Amazon Elastic Block Store", "Amazon EC2 NVMe Instance Storage"

func TestABlankVolumeIsFormattedOnceAndMountedAtEachBoot(t *testing.T) {
	for _, shell := range shells {
		r := newDiskRig(t)
		r.disk("nvme0n1", "vol0aaaaaaaaaaaaaaaa", ebs, bytes.Repeat([]byte("root"), 1000))
		data := r.disk("nvme1n1", "vol0123456789abcdef0", ebs, nil)
		if mounts, failed := r.boot(shell, Volume{Path: "/data", IDs: []string{"vol-0fedcba9876543210", "vol-0123456789abcdef0"}}); failed != "" || mounts != data+" "+r.dir+"/data\n" {
			t.Fatalf("%s: %q %q", shell, mounts, failed)
		}
		if out, _ := exec.Command("blkid", "-p", "-o", "value", "-s", "TYPE", data).Output(); string(out) != "ext4\n" {
			t.Errorf("%s: it has %q", shell, out)
		}
		first := sum(t, data)
		if _, failed := r.boot(shell, Volume{Path: "/data", IDs: []string{"vol-0123456789abcdef0"}}); failed != "" {
			t.Error(failed)
		}
		if sum(t, data) != first {
			t.Errorf("%s: the second boot has written to it", shell)
		}
		if _, failed := r.boot(shell, Volume{Path: "/other", IDs: []string{"vol-0fedcba9876543210"}}); !strings.Contains(failed, "vol-0fedcba9876543210 is not attached") {
			t.Error(failed)
		}
	}
}

// What was made with the machine is found again after a reboot, when its names have
// changed.
func TestTheVolumeThatWasMadeWithTheMachineIsKnownAgain(t *testing.T) {
	r := newDiskRig(t)
	r.disk("nvme0n1", "vol0aaaaaaaaaaaaaaaa", ebs, bytes.Repeat([]byte("root"), 1000))
	at := r.disk("nvme1n1", "vol0bbbbbbbbbbbbbbbb", ebs, nil)
	v := Volume{Path: "/scratch", GiB: 1}
	line := v.line()
	if want := "/scratch new 1073741824"; line != want {
		t.Fatalf("%q", line)
	}
	for i := range r.lines {
		r.lines[i] = strings.Replace(r.lines[i], fmt.Sprint(diskSize), "1073741824", 1)
	}
	must(t, os.Truncate(at, 1<<30)) // sparse
	if mounts, failed := r.boot("dash", v); failed != "" || mounts != at+" "+r.dir+"/scratch\n" {
		t.Fatalf("%q %q", mounts, failed)
	}
	uuid := strings.Fields(r.read("volumes.made"))
	if len(uuid) != 2 {
		t.Fatalf("%q", uuid)
	}
	r.shim("blkid", `[ "$1" != -U ] || { echo "$DLWB_DEV/nvme1n1"; exit 0; }; exec /usr/sbin/blkid "$@"`)
	before := sum(t, at)
	if mounts, failed := r.boot("dash", v); failed != "" || strings.Count(mounts, at) != 2 {
		t.Errorf("%q %q", mounts, failed)
	}
	if sum(t, at) != before {
		t.Error("it was written to")
	}
}

// sized adds blank disks of 24 MiB that say they have 1 GiB.
func (r *diskRig) sized(name, serial string) string {
	r.t.Helper()
	at := r.disk(name, serial, ebs, nil)
	must(r.t, os.Truncate(at, 1<<30)) // sparse
	last := &r.lines[len(r.lines)-1]
	*last = strings.Replace(*last, fmt.Sprint(diskSize), "1073741824", 1)
	return at
}

// A blank volume of somebody's that has the size of the one that was made with the
// machine is not taken for it.
func TestABlankVolumeOfAnothersIsNotTakenForTheOneThatWasMade(t *testing.T) {
	formatted := func(at string) bool {
		out, _ := exec.Command("blkid", "-p", "-o", "value", "-s", "TYPE", at).Output()
		return len(out) > 0
	}
	const tellsAll = `case "$2" in */nvme1n1) echo /dev/sdh ;; */nvme2n1) echo sdg ;; */nvme3n1) echo sdf ;; *) exit 1 ;; esac`
	// As nvme id-ctrl -b gives it: 4096 bytes, the name at 3072.
	const raw = `case "$3" in */nvme1n1) n=xvdh ;; */nvme2n1) n=/dev/sdg ;; *) n=sdf ;; esac; head -c 3072 /dev/zero; printf '%-32s' "$n"; head -c 992 /dev/zero`
	for _, shell := range shells {
		for name, c := range map[string]struct{ program, text string }{"ebsnvme-id": {"ebsnvme-id", tellsAll}, "nvme": {"nvme", raw}} {
			r := newDiskRig(t)
			others := r.sized("nvme1n1", "vol0aaaaaaaaaaaaaaaa")
			second, first := r.sized("nvme2n1", "vol0bbbbbbbbbbbbbbbb"), r.sized("nvme3n1", "vol0cccccccccccccccc")
			r.shim(c.program, c.text)
			mounts, failed := r.boot(shell, Volume{Path: "/a", GiB: 1}, Volume{Path: "/b", GiB: 1})
			if want := first + " " + r.dir + "/a\n" + second + " " + r.dir + "/b\n"; failed != "" || mounts != want || formatted(others) {
				t.Errorf("%s, %s: %q %q, want %q", shell, name, mounts, failed, want)
			}
		}
		r := newDiskRig(t) // nobody can tell
		others, own := r.sized("nvme1n1", "vol0aaaaaaaaaaaaaaaa"), r.sized("nvme2n1", "vol0bbbbbbbbbbbbbbbb")
		if mounts, failed := r.boot(shell, Volume{Path: "/a", GiB: 1}); !strings.Contains(failed, "2 disks of 1073741824 bytes are blank") || mounts != "" || formatted(others) || formatted(own) {
			t.Errorf("%s: %q %q", shell, mounts, failed)
		}
		// One of them is named by the profile, and so the other one is not.
		mounts, failed := r.boot(shell, Volume{Path: "/a", GiB: 1}, Volume{Path: "/data", IDs: []string{"vol-0aaaaaaaaaaaaaaaa"}})
		if want := own + " " + r.dir + "/a\n" + others + " " + r.dir + "/data\n"; failed != "" || mounts != want {
			t.Errorf("%s: %q %q, want %q", shell, mounts, failed, want)
		}
		r = newDiskRig(t) // a machine of Xen
		own = r.sized("xvdf", "")
		if mounts, failed := r.boot(shell, Volume{Path: "/a", GiB: 1}); failed != "" || mounts != own+" "+r.dir+"/a\n" {
			t.Errorf("%s: %q %q", shell, mounts, failed)
		}
	}
}

func TestAnInstanceStoreOfSeveralDisksIsOneOfThemAll(t *testing.T) {
	r := newDiskRig(t)
	a, b := r.disk("nvme1n1", "AWS1", nvme, nil), r.disk("nvme2n1", "AWS2", nvme, nil)
	if _, failed := r.boot("dash", Volume{Path: "/fast", Store: true}); !strings.Contains(failed, "mdadm is not there") {
		t.Errorf("%q", failed)
	}
	r.shim("mdadm", `echo "$*" >"$DLWB_DIR/mdadm"; mkdir -p "$DLWB_DEV/md"; head -c 30000000 /dev/zero >"$DLWB_DEV/md/dlwb"`)
	mounts, failed := r.boot("dash", Volume{Path: "/fast", Store: true})
	if said := r.read("mdadm"); failed != "" || !strings.Contains(said, "--level=0 --raid-devices=2 "+a+" "+b) || !strings.Contains(mounts, "/md/dlwb "+r.dir+"/fast") {
		t.Errorf("%q %q %q", said, mounts, failed)
	}
	r = newDiskRig(t)
	if _, failed := r.boot("dash", Volume{Path: "/fast", Store: true}); !strings.Contains(failed, "has no instance store") {
		t.Errorf("%q", failed)
	}
}

// contents are what may be on a disk, each with its signature where that belongs.
var contents = map[string]func(t *testing.T, at string){
	"ext4": func(t *testing.T, at string) { made(t, "mkfs.ext4", "-q", at) },
	"swap": func(t *testing.T, at string) { made(t, "mkswap", at) },
	"xfs":  sign(0, "XFSB\x00\x00\x10\x00"), "btrfs": sign(0x10040, "_BHRfS_M"), "luks": sign(0, "LUKS\xba\xbe\x00\x02"),
	"lvm": sign(512, "LABELONE\x01\x00\x00\x00\x00\x00\x00\x00"), "gpt": sign(512, "EFI PART\x00\x00\x01\x00"),
	"mbr": sign(510, "\x55\xaa"), "zfs": sign(4<<20-128<<10, "\x0c\xb1\xba\x00\x00\x00\x00\x00"), "a raid at its end": sign(diskSize-64<<10, "\xfc\x4e\x2b\xa9"),
	"raw data": func(t *testing.T, at string) { sign(rand.Int64N(4<<20), "tensor")(t, at) },
}

func made(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %s", name, out)
	}
}

func sign(at int64, text string) func(*testing.T, string) {
	return func(t *testing.T, file string) {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		must(t, err)
		_, err = f.WriteAt([]byte(text), at)
		must(t, err)
		must(t, f.Close())
	}
}

// A disk that holds anything is never written to: whatever it holds, whichever of
// the programs that tell of it is missing, fails, or says that there is nothing,
// and however the profile calls the disk.
func TestADiskThatHoldsAnythingIsNeverFormatted(t *testing.T) {
	var names []string
	for name := range contents {
		names = append(names, name)
	}
	ways := []string{"", "exit 1", "exit 2", "exit 0", "exit 127", "echo nonsense; exit 4"}
	for range sample.Of(t, 60, 1500, "disks") {
		r := newDiskRig(t)
		at := r.disk("nvme1n1", "vol0123456789abcdef0", ebs, nil)
		name := names[rand.IntN(len(names))]
		contents[name](t, at)
		told := []string{name}
		for _, p := range []string{"blkid", "wipefs", "lsblk", "sha256sum", "dd"} {
			if rand.IntN(3) > 0 {
				continue
			}
			way := ways[rand.IntN(len(ways))]
			if p == "sha256sum" || p == "dd" {
				way = ways[rand.IntN(2)] // who reads nothing right is not believed
			}
			if p == "lsblk" && way != "" {
				way = `case "$*" in *-bdnP*) cat "$DLWB_DIR/lsblk" ;; *) ` + way + ` ;; esac`
			}
			r.shim(p, way)
			told = append(told, p+": "+way)
		}
		before := sum(t, at)
		v := Volume{Path: "/data", IDs: []string{"vol-0123456789abcdef0"}}
		if rand.IntN(3) == 0 {
			r.lines[0] = strings.Replace(r.lines[0], ebs, nvme, 1)
			v = Volume{Path: "/data", Store: true}
		}
		_, failed := r.boot(shells[rand.IntN(len(shells))], v)
		if sum(t, at) != before {
			t.Fatalf("%q was written to; %q", told, failed)
		}
	}
}
