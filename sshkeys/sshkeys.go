// Package sshkeys collects what a login by ssh is tried with: private keys in
// files, and those that an ssh agent holds. It dials nothing but the agent.
package sshkeys

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/dlwb/dlwb/internal/plainfile"
	"github.com/dlwb/dlwb/internal/waits"
)

// Keys say with what to prove who we are.
type Keys struct {
	// Files are private keys, tried in this order. One that is not there is
	// passed over; one on a security key is used through the agent, and so is
	// one with a passphrase, unless that is given: see Proof.Unlock.
	Files []string `json:"files,omitempty"`
	// Named: somebody has named these files, so that one which is not there is missed.
	Named bool `json:"named,omitempty"`
	// Certificates are files of certificates for these keys or the agent's, beside
	// those that lie next to their keys.
	Certificates []string `json:"certificates,omitempty"`
	// Agent is the socket of an ssh agent whose keys are tried too; it is
	// never forwarded. "SSH_AUTH_SOCK" stands for what that variable holds for whoever dials;
	// empty: no agent.
	Agent string `json:"agent,omitempty"`
	// OnlyFiles leaves out those of the agent's keys that Files do not name.
	OnlyFiles bool `json:"only_files,omitempty"`
}

// Proof is what one login is tried with. It is closed when the login is over:
// until then keys of the agent ask the agent.
type Proof struct {
	Signers []ssh.Signer
	Tried   []string // the keys, as a person names them
	// The rest are files that could not be tried, as the agent does not hold
	// what is in them: with a passphrase, or of a security key.
	Locked, OnDevice []string
	// Public are files of public keys, by which the agent's are named, and Missing
	// files that are named and are not there.
	Public, Missing []string
	// Unreadable are files that hold no key, or that can't be read, each with
	// the reason: "/home/ada/.ssh/id: permission denied".
	Unreadable []string
	// Expired are files of certificates whose time is over, each with when that was.
	Expired []string
	// Silent is the socket of an agent that does not answer; empty: there is
	// none, or it does.
	Silent string
	// Unheard is the socket of an agent that can't be reached, with the reason.
	Unheard string
	agent   *agentConn
	letGo   func() bool
}

// listLimit bounds the agent's answer to the question which keys it holds: it
// has no reason to think about that, or to ask anybody.
const listLimit = 3 * time.Second

// agentConn is a connection to an agent that knows whether it owes an answer.
type agentConn struct {
	net.Conn
	socket string
	owes   atomic.Bool
}

// Write asks for something.
func (c *agentConn) Write(p []byte) (int, error) {
	c.owes.Store(true)
	return c.Conn.Write(p)
}

// Read takes some of an answer.
func (c *agentConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.owes.Store(false)
	}
	return n, err
}

// keyMost bounds the file of a key.
const keyMost = 1 << 20

// Gather collects the keys to log in with, each once: those of the files in
// their order, from the agent where it holds them, then the agent's others. What
// the agent is asked for ends with ctx and within the limit.
func Gather(ctx context.Context, k Keys, limit time.Duration) *Proof {
	p := &Proof{}
	held := p.askAgent(ctx, k.Agent, limit)
	for _, path := range k.Certificates {
		p.addCertificate(path, k.Files, held)
	}
	for _, path := range k.Files {
		p.addFile(path, held, k.Named)
	}
	for _, s := range held {
		if !k.OnlyFiles && !p.has(s.PublicKey()) {
			p.add(s, "the agent's "+Text(s.PublicKey()))
		}
	}
	return p
}

// askAgent lists the keys of the agent. One that does not answer holds none.
func (p *Proof) askAgent(ctx context.Context, socket string, limit time.Duration) []ssh.Signer {
	if socket == "SSH_AUTH_SOCK" {
		socket = os.Getenv(socket)
	}
	if socket == "" {
		return nil
	}
	list := min(limit/3, listLimit)
	asked, cancel := waits.Within(ctx, waits.Wait{On: "the ssh agent", What: "to list its keys", Limit: list})
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(asked, "unix", socket)
	if err != nil {
		p.Unheard = socket + " (" + whyUnreached(err) + ")"
		return nil
	}
	p.agent = &agentConn{Conn: conn, socket: socket}
	p.letGo = context.AfterFunc(ctx, func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(list))
	held, _ := agent.NewClient(p.agent).Signers()
	_ = conn.SetDeadline(time.Now().Add(limit)) // for the signatures
	p.Silent = p.Stuck()
	return held
}

// Stuck is the socket of the agent while it owes an answer; empty: it owes none.
func (p *Proof) Stuck() string {
	if p.agent != nil && p.agent.owes.Load() {
		return p.agent.socket
	}
	return ""
}

// Close lets go of the agent.
func (p *Proof) Close() {
	if p.agent != nil {
		p.letGo()
		_ = p.agent.Close()
	}
}

func (p *Proof) add(s ssh.Signer, name string) {
	p.Signers = append(p.Signers, s)
	p.Tried = append(p.Tried, name)
}

func (p *Proof) has(key ssh.PublicKey) bool {
	return slices.ContainsFunc(p.Signers, func(s ssh.Signer) bool { return Same(s.PublicKey(), key) })
}

// addFile takes up one private key: by the agent where that holds it, so that
// its passphrase does not matter. A certificate that lies beside it goes first.
func (p *Proof) addFile(path string, held []ssh.Signer, named bool) {
	signer, public, err := readKey(path)
	var locked *ssh.PassphraseMissingError
	if public != nil {
		if i := slices.IndexFunc(held, func(s ssh.Signer) bool { return Same(s.PublicKey(), public) }); i >= 0 {
			signer = held[i]
		}
	}
	switch {
	case signer != nil:
		p.certify(path+"-cert.pub", []ssh.Signer{signer})
		p.add(signer, path)
	case err == nil || errors.Is(err, fs.ErrNotExist) && !named:
	case errors.Is(err, fs.ErrNotExist):
		p.Missing = append(p.Missing, path)
	case isDevice(public):
		p.OnDevice = append(p.OnDevice, path)
	case errors.As(err, &locked):
		p.Locked = append(p.Locked, path)
	case readPublic(path) != nil:
		p.Public = append(p.Public, path)
	default:
		p.Unreadable = append(p.Unreadable, path+": "+whyUnreadable(err))
	}
}

// addCertificate takes up a certificate that lies elsewhere, for a key of the files or
// of the agent.
func (p *Proof) addCertificate(path string, files []string, held []ssh.Signer) {
	keys := slices.Clone(held)
	for _, file := range files {
		if signer, _, err := readKey(file); err == nil {
			keys = append(keys, signer)
		}
	}
	p.certify(path, keys)
}

// certify adds the certificate in a file, where there is one for one of the keys. A
// server takes none whose time is over: it is not tried.
func (p *Proof) certify(path string, keys []ssh.Signer) {
	cert, is := readPublic(path).(*ssh.Certificate)
	if !is {
		return
	}
	if ends := int64(min(cert.ValidBefore, math.MaxInt64)); cert.ValidBefore != ssh.CertTimeInfinity && ends <= time.Now().Unix() {
		p.Expired = append(p.Expired, path+" (since "+time.Unix(ends, 0).Format("2006-01-02 15:04")+")")
		return
	}
	for _, signer := range keys {
		if certified, err := ssh.NewCertSigner(cert, signer); err == nil && !p.has(cert) {
			p.add(certified, path)
		}
	}
}

// isDevice reports whether a key is on a security key (FIDO): its file holds
// only a handle.
func isDevice(public ssh.PublicKey) bool {
	return public != nil && strings.HasPrefix(public.Type(), "sk-")
}

// whyUnreadable is an error without the path, which stands in front of it.
func whyUnreadable(err error) string {
	var number syscall.Errno
	var failed *fs.PathError
	if errors.Is(err, plainfile.ErrNotRegular) && errors.As(err, &failed) {
		return failed.Err.Error()
	}
	if errors.As(err, &number) {
		return number.Error()
	}
	return "it is no private key that dlwb can read (" + strings.TrimPrefix(err.Error(), "ssh: ") + ")"
}

// whyUnreached is why nobody answers at a socket, without its path.
func whyUnreached(err error) string {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	return err.Error()
}

// Missed says which keys were not tried, and why; empty: none. next is what to
// do about the first of them.
func (p *Proof) Missed() (why, next string) {
	var all []string
	say := func(files []string, format, todo string) {
		if len(files) == 0 {
			return
		}
		all = append(all, fmt.Sprintf(format, strings.Join(files, " and ")))
		if next == "" {
			next = strings.ReplaceAll(todo, "FILE", files[0])
		}
	}
	agent := "does not hold it"
	if p.Unheard != "" { // before the keys that it may hold
		agent = "can't be asked for it"
		say([]string{p.Unheard}, "the ssh agent can't be reached at %s, so its keys were not tried", "start the agent, or see whether SSH_AUTH_SOCK and IdentityAgent lead to the one that runs; ssh-add -l asks it")
	}
	say(p.Locked, "the key %s has a passphrase, and the ssh agent "+agent, "ssh-add FILE")
	say(p.OnDevice, "the key %s is on a security key, which is used through the ssh agent, and that "+agent, "ssh-add FILE")
	say(p.Public, "%s is a public key, whose private half the ssh agent has to hold, and that "+agent, "ssh-add -l lists what the agent holds")
	say(p.Expired, "the certificate %s has expired", "have a new certificate made")
	say(p.Missing, "the key %s is not there, and is named as an IdentityFile", "ls -l FILE")
	if p.Silent != "" {
		say([]string{p.Silent}, "the ssh agent at %s does not answer, so its keys were not tried", "SSH_AUTH_SOCK= dlwb ... does without it")
	}
	if len(p.Unreadable) > 0 {
		all = append(all, "not tried: "+strings.Join(p.Unreadable, ", "))
		if file, _, ok := strings.Cut(p.Unreadable[0], ": "); ok && next == "" {
			next = "ls -l " + file
		}
	}
	return strings.Join(all, "; "), next
}

// readKey reads a private key. Where it can't be used as it is, its public half
// may still be known, which is enough to ask the agent for it.
func readKey(path string) (signer ssh.Signer, public ssh.PublicKey, err error) {
	text, err := plainfile.Read(path, keyMost)
	if err == nil {
		if signer, err = ssh.ParsePrivateKey(text); err == nil {
			return signer, signer.PublicKey(), nil
		}
	}
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		if signer = wasUnlocked(text); signer != nil {
			return signer, signer.PublicKey(), nil
		}
	}
	if public = publicHalf(text); public == nil {
		public = readPublic(path)
	}
	if public == nil {
		public = readPublic(path + ".pub")
	}
	return nil, public, err
}

// publicHalf is the public key that stands in the clear in a private key of
// OpenSSH's own form, also where that has a passphrase or is on a security key;
// nil when the file has another form.
func publicHalf(text []byte) ssh.PublicKey {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil
	}
	rest, ok := bytes.CutPrefix(block.Bytes, []byte("openssh-key-v1\x00"))
	var form struct {
		Cipher, KDF, Options string
		Count                uint32
		Public               []byte
		Rest                 []byte `ssh:"rest"`
	}
	if !ok || ssh.Unmarshal(rest, &form) != nil {
		return nil
	}
	key, err := ssh.ParsePublicKey(form.Public)
	if err != nil {
		return nil
	}
	return key
}

// readPublic reads a public key; nil when there is none.
func readPublic(path string) ssh.PublicKey {
	text, err := plainfile.Read(path, keyMost)
	if err != nil {
		return nil
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		return nil
	}
	return key
}

// Same reports whether two keys are one.
func Same(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }

// Text names a key: its type and its fingerprint.
func Text(k ssh.PublicKey) string { return k.Type() + " " + ssh.FingerprintSHA256(k) }
