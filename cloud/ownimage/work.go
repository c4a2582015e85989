package ownimage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/dockerfile"
	"github.com/dlwb/dlwb/internal/pattern"
	"github.com/dlwb/dlwb/internal/shellword"
)

// workLimit bounds a build and a push: an image for GPUs has ten gigabytes and more, and
// a slow line takes an hour for them.
const workLimit = 3 * time.Hour

// loginLimit bounds a login.
const loginLimit = time.Minute

// work makes one image.
type work struct {
	engine     engine
	room       *room
	repository *repository
	order      Order
	image      string // with its tag
	tell       func(string)
}

// build builds the image from a copy of all that it is made of.
func (w *work) build(ctx context.Context, from *source) error {
	if err := from.stage(w.room); err != nil {
		return err
	}
	if err := w.bases(ctx, from); err != nil {
		return err
	}
	args := []string{"build", "--platform", Platform, "--tag", w.image, "--file", w.room.dockerfile()}
	if w.engine.name == podman {
		args = append(args, "--format", "docker") // which every service takes
	}
	// An attestation beside the image would make a list of it, which SageMaker refuses.
	last, err := w.run(ctx, call{what: "to build the image", limit: workLimit, dir: w.room.context(), env: []string{"BUILDX_NO_DEFAULT_ATTESTATIONS=1"}, args: append(args, ".")})
	return w.failed(ctx, "build", err, last, buildReasons)
}

// bases brings images from ECR that this one begins from: for these the user's own docker
// has no login, and dlwb gets one.
func (w *work) bases(ctx context.Context, from *source) error {
	for _, name := range dockerfile.Bases(string(from.text)) {
		m := ecrHost.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		if err := w.login(ctx, m[1], m[2]); err != nil {
			return err
		}
		last, err := w.run(ctx, w.private(call{what: "to pull " + name, limit: workLimit, args: []string{"pull", "--platform", Platform, name}}))
		w.room.logout()
		if err := w.failed(ctx, "pull", err, last, buildReasons); err != nil {
			return err
		}
	}
	return nil
}

// host is that of the repository's registry.
func (w *work) host() string {
	host, _, _ := strings.Cut(w.repository.address, "/")
	return host
}

// push pushes the image and gives the digest of what the registry has then. A token that
// is not taken any more is replaced once. Another dlwb may have pushed the same meanwhile.
func (w *work) push(ctx context.Context, tag string) (digest string, err error) {
	for try := 1; ; try++ {
		if err := w.login(ctx, w.host(), w.repository.region); err != nil {
			return "", err
		}
		args := []string{"push"}
		if w.engine.name == podman {
			args = append(args, "--digestfile", w.room.digestFile())
		}
		last, err := w.run(ctx, w.private(call{what: "to push the image", limit: workLimit, args: append(args, w.image)}))
		w.room.logout()
		switch {
		case err == nil:
			return w.pushed(ctx, tag, last)
		case ctx.Err() != nil:
			return "", ctx.Err()
		case try == 1 && expired.MatchString(strings.Join(last, "\n")):
			w.tell("the token of ECR is not taken any more: another is asked for")
			continue
		}
		if there, look := w.repository.find(ctx, tag); look == nil && there != "" {
			return there, nil
		}
		return "", w.failed(ctx, "push", err, last, pushReasons)
	}
}

// expired is what registries say to a token that has had its time.
var expired = pattern.New(`(?i)token has expired|expired token|no basic auth credentials|authentication required`)

// pushedDigest is how docker tells what it has pushed.
var pushedDigest = pattern.New(`digest: (sha256:[0-9a-f]{64})\b`)

// pushed is the digest of what was pushed, as the engine has it, else ECR.
func (w *work) pushed(ctx context.Context, tag string, last []string) (string, error) {
	text, _ := os.ReadFile(w.room.digestFile())
	digest := strings.TrimSpace(string(text))
	if m := pushedDigest.FindStringSubmatch(strings.Join(last, "\n")); digest == "" && m != nil {
		digest = m[1]
	}
	if digestForm.MatchString(digest) {
		return digest, nil
	}
	digest, err := w.repository.find(ctx, tag)
	if err == nil && digest == "" {
		err = &Error{Why: w.engine.name + " says that it has pushed the image, and ECR does not show it", Next: "run it again", Lines: last}
	}
	return digest, err
}

// login has the engine log in to a registry, into the room alone. The password goes by
// standard input.
func (w *work) login(ctx context.Context, host, region string) error {
	user, password, err := w.repository.token(ctx, region)
	if err == nil {
		err = w.settings(host)
	}
	if err != nil {
		return err
	}
	c := w.private(call{what: "to log in to the registry", limit: loginLimit, stdin: password, args: []string{"login", "--username", user, "--password-stdin", host}})
	last, err := w.engine.run(ctx, c)
	return w.failed(ctx, "login", err, last, pushReasons)
}

// private has a call use the login of the room in place of the user's.
func (w *work) private(c call) call {
	c.env = append(c.env, "DOCKER_CONFIG="+w.room.login())
	if w.engine.name == podman {
		c.args = append([]string{c.args[0], "--authfile", w.room.authFile()}, c.args[1:]...)
	}
	return c
}

// kept are the user's settings of docker by which it finds its daemon and the network.
// The logins are not among them, nor what keeps logins elsewhere.
var kept = []string{"currentContext", "proxies", "HttpHeaders", "cliPluginsExtraDirs"}

// settings gives docker settings in the room: the user's, without any login. The empty one
// keeps docker from putting the password into a keychain that it finds.
func (w *work) settings(host string) error {
	if w.engine.name != docker {
		return nil
	}
	home, _ := os.UserHomeDir()
	own := cmp.Or(os.Getenv("DOCKER_CONFIG"), filepath.Join(home, ".docker"))
	users, mine := map[string]any{}, map[string]any{"auths": map[string]any{host: map[string]any{}}}
	if text, err := os.ReadFile(filepath.Join(own, "config.json")); err == nil {
		_ = json.Unmarshal(text, &users) // what can't be read docker itself tells
	}
	for _, key := range kept {
		if value, is := users[key]; is {
			mine[key] = value
		}
	}
	for _, name := range []string{"contexts", "cli-plugins"} {
		if _, err := os.Stat(filepath.Join(own, name)); err == nil {
			_ = os.Symlink(filepath.Join(own, name), filepath.Join(w.room.login(), name))
		}
	}
	text, err := json.Marshal(mine)
	if err != nil {
		return err
	}
	return os.WriteFile(w.room.authFile(), text, 0o600)
}

// run runs the engine and tells its lines, the command first.
func (w *work) run(ctx context.Context, c call) ([]string, error) {
	w.tell(w.shown(c.args))
	c.tell = w.tell
	return w.engine.run(ctx, c)
}

// shown is a command as a person would type it: the room is a place of no interest.
func (w *work) shown(args []string) string {
	line := shellword.Join(append([]string{w.engine.name}, args...)...)
	return strings.ReplaceAll(line, w.room.dockerfile(), w.order.Dockerfile)
}

// failed says why a step of the engine failed; nil: it did not.
func (w *work) failed(ctx context.Context, step string, err error, last []string, reasons []reason) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case code(err) < 0:
		return &Error{Why: fmt.Sprintf("%s %s could not be carried out: %v", w.engine.name, step, err), Next: "run it again; or try the command by hand", Command: w.engine.name + " " + step, Lines: last}
	}
	e := &Error{Command: w.engine.name + " " + step, Lines: last}
	if e.Why, e.Next = explain(strings.Join(last, "\n"), reasons, w.repository); e.Why == "" {
		e.Why, e.Next = dockerfile.Explain(last, "the image of "+w.order.Dockerfile+", or one that it begins from,", dockerfile.Here)
	}
	if e.Why == "" {
		e.Why, e.Next = fmt.Sprintf("%s %s failed (exit code %d)", w.engine.name, step, code(err)), "see its last lines, or run it by hand"
	}
	return e
}
