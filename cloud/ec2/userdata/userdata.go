// Package userdata writes what a machine of EC2 is told before it boots: the
// host key that it shows first, who may log in, and its lease. The lease is
// the last guard against a machine that nobody remembers: it shuts the machine
// down by itself. It is a few POSIX sh scripts in /var/lib/dlwb; their texts,
// with the reasons for what they do, are in scripts/.
package userdata

import (
	"fmt"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/pattern"
)

// MaxSize is what EC2 takes as user-data, in bytes, before it is encoded.
const MaxSize = 16 << 10

// Boot is what one machine is told.
type Boot struct {
	// Life and Cluster say whose machine it is; its results go to a place of
	// that name.
	Life, Cluster string
	// User is who logs in, and is made where the image does not have it;
	// empty: the image's own user.
	User string
	// AuthorizedKey lets the user in, in authorized_keys form.
	AuthorizedKey string
	// HostKeyPrivate and HostKeyPublic are the host key of the first
	// connection, in OpenSSH form (ed25519). Whoever may read user-data may
	// read it, so it is worth nothing once the machine has made its own.
	HostKeyPrivate, HostKeyPublic string
	Lease                         Lease
	// More is what the user adds: a script, or a cloud-config document. Nothing in
	// it takes the place of what stands here.
	More string
	// Volumes are mounted at the end of each boot, and formatted where they are
	// certainly blank.
	Volumes []Volume
	// SpotNotice makes the machine ask for EC2's notice that it takes it back.
	SpotNotice bool
	// IPv6 says that it has no IPv4 address: the metadata service answers elsewhere.
	IPv6 bool
}

// Lease is how long a machine may live. Each limit is one second at least; 0
// means that there is none.
type Lease struct {
	// Bootstrap is how long it waits for somebody to make use of it at all.
	Bootstrap time.Duration
	// Idle is how long it waits without a run, somebody at a terminal, or
	// work on a GPU.
	Idle time.Duration
	// Lifetime and Budget count the time that the machine runs, over all its
	// boots, and end it whatever it does. Budget is the time that the money
	// pays for.
	Lifetime, Budget time.Duration
	// Drain is what is saved before the end, in DrainLimit at most; 0 means
	// ten minutes.
	Drain      cloud.Drain
	DrainLimit time.Duration
}

// Render writes the user-data: a cloud-config document. It refuses with an
// error whatever could mean more than it says there, and what is too long for
// EC2. The only private thing in it is the first host key.
func Render(b Boot) ([]byte, error) {
	if err := b.check(); err != nil {
		return nil, fmt.Errorf("write the user-data: %w", err)
	}
	keys, err := b.keys()
	if err != nil {
		return nil, fmt.Errorf("write the user-data: %w", err)
	}
	text := "#cloud-config\n" +
		"# Written by dlwb for a machine of cluster " + b.Cluster + ".\n" +
		"ssh_deletekeys: true\nssh_pwauth: false\n" + keys.yaml() + b.users(keys.authorized) +
		"bootcmd:\n- |\n" + indent(b.program())
	if b.More != "" {
		if text, err = withMore(text, b.More); err != nil {
			return nil, fmt.Errorf("write the user-data: %w", err)
		}
	}
	if len(text) <= MaxSize {
		return []byte(text), nil
	}
	packed := pack(text)
	if len(packed) > MaxSize {
		return nil, fmt.Errorf("write the user-data: it has %d bytes, %d compressed, and EC2 takes %d: shorten machines.user_data, or give fewer or shorter paths to save",
			len(text), len(packed), MaxSize)
	}
	return packed, nil
}

var (
	plainLife    = pattern.New(`^[0-9a-f]{12}$`)
	plainCluster = pattern.New(`^[a-z0-9-]{1,40}$`)
	plainUser    = pattern.New(`^[a-z_][a-z0-9_-]{0,31}$`)
	plainBucket  = pattern.New(`^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/.*)?$`)
)

func (b Boot) check() error {
	switch {
	case !plainLife.MatchString(b.Life):
		return fmt.Errorf("%q is not the id of a life", b.Life)
	case !plainCluster.MatchString(b.Cluster):
		return fmt.Errorf("%q can't be the name of a cluster", b.Cluster)
	case b.User != "" && !plainUser.MatchString(b.User):
		return fmt.Errorf("%q can't be the name of a user", b.User)
	}
	for _, v := range b.Volumes {
		if err := v.check(); err != nil {
			return err
		}
	}
	return b.Lease.check()
}

// Volume is a disk for data.
type Volume struct {
	Path string // where it is mounted
	// IDs are those of EBS volumes that exist, one of which is this machine's; none:
	// it is one of so many GiB that is made with the machine.
	IDs []string
	GiB int32
	// Store: it is the instance store, all disks of it as one.
	Store bool
}

var (
	plainMount  = pattern.New(`^/[A-Za-z0-9._/-]{1,200}$`)
	plainVolume = pattern.New(`^vol-[0-9a-f]{8,17}$`)
)

func (v Volume) check() error {
	if !plainMount.MatchString(v.Path) || path.Clean(v.Path) != v.Path {
		return fmt.Errorf("nothing can be mounted at %q: write a path like /data", v.Path)
	}
	for _, id := range v.IDs {
		if !plainVolume.MatchString(id) {
			return fmt.Errorf("%q is no EBS volume for %s", id, v.Path)
		}
	}
	if len(v.IDs) == 0 && !v.Store && v.GiB <= 0 {
		return fmt.Errorf("the volume for %s has no size", v.Path)
	}
	return nil
}

// line is a volume as the script of that name reads it.
func (v Volume) line() string {
	switch {
	case v.Store:
		return v.Path + " instance-store 0"
	case len(v.IDs) > 0:
		return v.Path + " " + strings.Join(v.IDs, ",") + " 0"
	}
	return fmt.Sprintf("%s new %d", v.Path, int64(v.GiB)<<30)
}

// longest is a limit that the script's arithmetic surely holds: 30 years.
const longest = 30 * 365 * 24 * time.Hour

func (l Lease) check() error {
	for name, d := range map[string]time.Duration{
		"bootstrap": l.Bootstrap, "idle": l.Idle, "lifetime": l.Lifetime, "budget": l.Budget, "drain": l.DrainLimit,
	} {
		if d < 0 || d > longest || d > 0 && d < time.Second {
			return fmt.Errorf("the lease's limit for %s can't be %v", name, d)
		}
	}
	if s3 := l.Drain.S3; s3 != "" && (!plainBucket.MatchString(s3) || !oneLine(s3)) {
		return fmt.Errorf("%q is not a place in S3: s3://bucket/prefix is", s3)
	}
	for _, p := range l.Drain.Paths {
		if err := checkPath(p); err != nil {
			return err
		}
	}
	return nil
}

// checkPath takes paths below the home directory. The home itself holds keys.
func checkPath(p string) error {
	clean := path.Clean(p)
	if p == "" || path.IsAbs(p) || clean == "." || clean == ".." || strings.HasPrefix(clean, "../") || clean[0] == '-' || !oneLine(p) {
		return fmt.Errorf("%q can't be saved: a path below the home directory is needed", p)
	}
	return nil
}

// oneLine reports whether a text is one line for YAML, for sh and for a person.
func oneLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// users lets the login user in. The image's own user stays; cloud-init gives
// it the keys at the top of the document.
func (b Boot) users(authorized string) string {
	switch b.User {
	case "":
		return ""
	case "root":
		return "disable_root: false\n"
	}
	return fmt.Sprintf("users:\n- default\n- name: %q\n  shell: /bin/bash\n  lock_passwd: true\n  sudo: ALL=(ALL) NOPASSWD:ALL\n"+
		"  ssh_authorized_keys:\n  - %q\n", b.User, authorized)
}

// keys are what the document says of keys, written anew from what was parsed,
// so that nothing else comes with them.
type keys struct{ private, public, authorized string }

func (b Boot) keys() (keys, error) {
	authorized, err := authorizedLine(b.AuthorizedKey)
	if err != nil {
		return keys{}, fmt.Errorf("the key that may log in: %w", err)
	}
	public, err := authorizedLine(b.HostKeyPublic)
	if err != nil {
		return keys{}, fmt.Errorf("the public host key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey([]byte(b.HostKeyPrivate))
	if err != nil {
		return keys{}, fmt.Errorf("the private host key: %w", err)
	}
	if kind := signer.PublicKey().Type(); kind != ssh.KeyAlgoED25519 {
		return keys{}, fmt.Errorf("the host key is %s, and must be %s", kind, ssh.KeyAlgoED25519)
	}
	if strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))) != public {
		return keys{}, fmt.Errorf("the two halves of the host key do not belong together")
	}
	private, err := onlyPEM(b.HostKeyPrivate)
	return keys{private, public, authorized}, err
}

func (k keys) yaml() string {
	return "ssh_keys:\n ed25519_private: |\n" + indent(indent(k.private)) +
		fmt.Sprintf(" ed25519_public: %q\nssh_authorized_keys:\n- %q\n", k.public, k.authorized)
}
