//go:build unix

package ownimage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/fakeecr"
	"github.com/dlwb/dlwb/internal/testprogram"
)

const region = "us-west-2"

// shop is a machine with a docker of tests, an account with a repository, and code.
type shop struct {
	t      *testing.T
	ecr    *fakeecr.Fake
	docker *fakeecr.Docker
	api    *awsapi.API
	code   cloud.Code
	steps  []string
	lines  []string
	refuse func(call string) *fakeecr.Error
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{t: t, ecr: fakeecr.New(region, "team/train"), docker: fakeecr.NewDocker(t), code: cloud.Code{Dir: t.TempDir()}}
	t.Cleanup(s.ecr.Close)
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	home := t.TempDir()
	for name, value := range map[string]string{"AWS_ENDPOINT_URL": server.URL, "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "x", "AWS_SESSION_TOKEN": "", "AWS_PROFILE": "",
		"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "AWS_EC2_METADATA_DISABLED": "true", "AWS_REGION": region, "HOME": home, "TMPDIR": t.TempDir(), "PATH": s.docker.Path(), "DOCKER_CONFIG": ""} {
		t.Setenv(name, value)
	}
	s.file("home/.docker/config.json", "")
	if err := os.MkdirAll(filepath.Join(home, ".docker"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, ".docker/config.json"), usersConfig)
	var err error
	if s.api, err = awsapi.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.code.Paths = nil
	s.file("Dockerfile", "FROM scratch\nCOPY requirements.txt src /app/\n")
	s.file("requirements.txt", "numpy")
	s.file("src/a.py", "a")
	s.file("train.py", "x")
	return s
}

// usersConfig are settings of docker as a user has them.
const usersConfig = `{"auths":{"https://index.docker.io/v1/":{"auth":"YW5uOnNlY3JldA=="}},"credsStore":"desktop","currentContext":"far","proxies":{"default":{"httpProxy":"http://proxy:3128"}}}`

func (s *shop) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, call, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	out, e := s.ecr.Answer(call, body)
	if s.refuse != nil {
		if refused := s.refuse(call); refused != nil {
			e = refused
		}
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if e != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]string{"__type": e.Code, "message": e.Says}
	}
	_ = json.NewEncoder(w).Encode(out)
}

// file puts a file into the code.
func (s *shop) file(name, text string) {
	s.t.Helper()
	if strings.HasPrefix(name, "home/") {
		return
	}
	at := filepath.Join(s.code.Dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		s.t.Fatal(err)
	}
	write(s.t, at, text)
	if !slices.Contains(s.code.Paths, name) {
		s.code.Paths = append(s.code.Paths, name)
	}
}

func write(t *testing.T, at, text string) {
	t.Helper()
	if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

var order = Order{Dockerfile: "Dockerfile", Repository: "team/train"}

func (s *shop) make(ctx context.Context) (Built, error) {
	s.steps, s.lines = nil, nil
	return Make(ctx, s.api, region, order, s.code, func(step, text string) { s.steps = append(s.steps, step+": "+text) }, func(_ int, text string) { s.lines = append(s.lines, text) })
}

func (s *shop) must() Built {
	s.t.Helper()
	b, err := s.make(s.t.Context())
	if err != nil {
		s.t.Fatalf("%v: %q", err, s.lines)
	}
	return b
}

// fails makes what has to fail.
func (s *shop) fails() *Error {
	s.t.Helper()
	_, err := s.make(s.t.Context())
	var e *Error
	if !errors.As(err, &e) {
		s.t.Fatalf("got %v", err)
	}
	return e
}

// A made image is named by what was pushed; the same code gives the same image, without
// docker; only what the Dockerfile copies counts.
func TestAnImageIsMadeOnceForWhatItIsMadeOf(t *testing.T) {
	s := newShop(t)
	b := s.must()
	if want := s.ecr.Host + "/team/train@" + s.ecr.Tags("team/train")[b.Tag]; b.Name() != want || b.Digest == "" {
		t.Errorf("it is %s, want %s", b.Name(), want)
	}
	if len(s.steps) != 1 || !strings.HasPrefix(s.steps[0], "build: Dockerfile with 2 files for linux/amd64, to "+s.ecr.Host) {
		t.Errorf("the steps are %q", s.steps)
	}
	calls := s.docker.Calls("build")
	if len(calls) != 1 || !strings.HasPrefix(calls[0], "build --platform linux/amd64 --tag "+s.ecr.Host+"/team/train:"+b.Tag+" --file ") || !strings.HasSuffix(calls[0], " . files requirements.txt src/a.py attestations 1") {
		t.Errorf("built by %q", calls)
	}
	s.file("train.py", "changed")
	if again := s.must(); again != b || len(s.docker.Calls("build"))+len(s.docker.Calls("push")) != 2 || !strings.Contains(s.steps[0], "unchanged: ") {
		t.Errorf("made again: %+v, %q", again, s.steps)
	}
	seen := map[string]bool{b.Tag: true}
	for what, change := range map[string]func(){
		"a file": func() { s.file("src/a.py", "b") }, "a file more": func() { s.file("src/b/c.py", "") },
		"the Dockerfile": func() { s.file("Dockerfile", "FROM scratch\nCOPY requirements.txt src /app/\nUSER 1\n") },
		"its mode":       func() { _ = os.Chmod(filepath.Join(s.code.Dir, "src/a.py"), 0o755) },
		"a link":         func() { s.code.Links = map[string]string{"src/latest.py": "a.py"} },
		"an empty room":  func() { s.code.Empty = []string{"src/out"} },
	} {
		change()
		if now := s.must(); seen[now.Tag] {
			t.Errorf("%s makes no other image", what)
		} else {
			seen[now.Tag] = true
		}
	}
	if n := len(s.ecr.Pushes()); n != 7 {
		t.Errorf("%d pushes", n)
	}
}

// The password of ECR goes by standard input, into a directory that is removed. The user's
// logins are not used for it and stay as they are.
func TestThePasswordOfTheRegistryIsSeenByNobody(t *testing.T) {
	s := newShop(t)
	s.must()
	word := s.ecr.Password()
	text, _ := os.ReadFile(filepath.Join(s.docker.Dir, "calls"))
	if strings.Contains(string(text), word) || strings.Contains(strings.Join(s.lines, "\n"), word) {
		t.Errorf("the password is shown: %s\n%q", text, s.lines)
	}
	login := s.docker.Calls("login")
	if len(login) != 1 || !strings.HasPrefix(login[0], "login --username AWS --password-stdin "+s.ecr.Host+" config "+os.TempDir()) {
		t.Errorf("login by %q", login)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
	if text, _ := os.ReadFile(filepath.Join(os.Getenv("HOME"), ".docker/config.json")); string(text) != usersConfig {
		t.Errorf("the user's settings are %s", text)
	}
	all := strings.Join(s.lines, "\n")
	if strings.Contains(all, "ann:secret") || !strings.Contains(all, "https://****@example.com/x") || !strings.Contains(all, "docker push "+s.ecr.Host) || !strings.Contains(all, "--file Dockerfile .") {
		t.Errorf("told is\n%s", all)
	}
}

// docker finds its daemon by the user's settings, which come along without the logins.
func TestTheSettingsForAPushAreTheUsersWithoutLogins(t *testing.T) {
	s := newShop(t)
	r, err := newRoom()
	if err != nil {
		t.Fatal(err)
	}
	defer r.remove()
	w := &work{engine: engine{name: docker}, room: r}
	if err := os.Mkdir(filepath.Join(os.Getenv("HOME"), ".docker/contexts"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := w.settings("host"); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(r.authFile())
	if got := string(text); got != `{"auths":{"host":{}},"currentContext":"far","proxies":{"default":{"httpProxy":"http://proxy:3128"}}}` {
		t.Errorf("got %s", got)
	}
	if to, err := os.Readlink(filepath.Join(r.login(), "contexts")); err != nil || !strings.HasPrefix(to, os.Getenv("HOME")) {
		t.Errorf("contexts lead to %q, %v", to, err)
	}
	if info, err := os.Stat(r.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the room is %v, %v", info.Mode(), err)
	}
	_ = s
}

// What a .dockerignore leaves out is neither in the image nor in its tag, and what dlwb
// itself leaves out is not there to be copied.
func TestWhatIsLeftOutIsNotInTheImage(t *testing.T) {
	s := newShop(t)
	s.file("Dockerfile", "FROM scratch\nCOPY . /app\n")
	s.file(".dockerignore", "# data\n*.bin\nsrc/**\n!src/a.py\n")
	s.file("big.bin", "0")
	s.file("src/b.py", "b")
	write(t, filepath.Join(s.code.Dir, ".env"), "PASSWORD=x") // held back: it is no part of the code
	b := s.must()
	if got, want := s.docker.Calls("build")[0], " files .dockerignore Dockerfile requirements.txt src/a.py train.py attestations"; !strings.Contains(got, want) {
		t.Errorf("built from %s", got)
	}
	s.file("big.bin", "1")
	s.file("src/b.py", "c")
	if again := s.must(); again.Tag != b.Tag {
		t.Error("what is left out makes another image")
	}
	s.file("Dockerfile.dockerignore", "*\n!train.py\n")
	if s.must(); !strings.Contains(s.docker.Calls("build")[1], " files train.py attestations") {
		t.Errorf("built from %q", s.docker.Calls("build"))
	}
}

// Where a script writes there is a directory in the image, too, unless nothing copies it.
func TestAnEmptyDirectoryIsInTheImage(t *testing.T) {
	s := newShop(t)
	s.file("Dockerfile", "FROM scratch\nCOPY src out /app/\n")
	s.file(".dockerignore", "src/left\n")
	s.code.Empty = []string{"src/deep/logs", "out", "other", "src/left"}
	s.must()
	if got := s.docker.Calls("build")[0]; !strings.Contains(got, " files out/ src/a.py src/deep/logs/ attestations") {
		t.Errorf("built from %s", got)
	}
}

// A link is copied with what it leads to.
func TestALinkComesWithWhatItLeadsTo(t *testing.T) {
	s := newShop(t)
	s.file("Dockerfile", "FROM scratch\nCOPY now.txt conf/x /app/\n")
	s.file("v2.txt", "2")
	s.file("real/x", "x")
	s.code.Links = map[string]string{"now.txt": "next.txt", "next.txt": "v2.txt", "conf": "real", "other": "train.py"}
	s.must()
	if got := s.docker.Calls("build")[0]; !strings.Contains(got, " files next.txt now.txt real/x v2.txt attestations") {
		t.Errorf("built from %s", got)
	}
}

// A token that is not taken any more is replaced once, and once only.
func TestATokenThatHasExpiredIsReplacedOnce(t *testing.T) {
	for _, ever := range []bool{false, true} {
		t.Run(fmt.Sprint(ever), func(t *testing.T) {
			s := newShop(t)
			asked := 0
			s.ecr.Deny = func(method, _ string) (int, string) {
				if asked++; method == http.MethodPut && (asked == 1 || ever) {
					return 403, "denied: Your authorization token has expired. Reauthenticate and try again."
				}
				return 0, ""
			}
			if !ever {
				s.must()
			} else if e := s.fails(); !strings.Contains(e.Why, "takes the token of this push no more") || !strings.Contains(e.Next, "clock") {
				t.Errorf("%+v", e)
			}
			if n := len(s.docker.Calls("push")); n != 2 {
				t.Errorf("%d pushes", n)
			}
		})
	}
}

// A push that fails where another has pushed the same meanwhile is none that failed.
func TestAnImageThatAnotherHasPushedMeanwhileIsTaken(t *testing.T) {
	s := newShop(t)
	b := s.must()
	looks := 0
	s.refuse = func(call string) *fakeecr.Error {
		if looks++; call == "DescribeImages" && looks < 3 { // it is not there yet
			return &fakeecr.Error{Code: "ImageNotFoundException", Says: "no"}
		}
		return nil
	}
	s.ecr.Deny = func(method, _ string) (int, string) {
		if method == http.MethodPut {
			return 400, "The image tag already exists in the 'team/train' repository and cannot be overwritten because the tag is immutable."
		}
		return 0, ""
	}
	if again := s.must(); again != b {
		t.Errorf("got %+v, want %+v", again, b)
	}
}

func TestWhyThereIsNoImageIsSaidWithWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		set       func(s *shop)
		why, next string
	}{
		"no engine": {func(s *shop) { s.t.Setenv("PATH", s.t.TempDir()) }, "neither docker nor podman on this machine", "install one of them"},
		"a mute one": {func(s *shop) {
			s.docker.Does(s.t, "info", "permission denied while trying to connect to the Docker daemon socket")
			s.t.Setenv("PATH", s.docker.Dir+":"+pythonAlone(s.t))
		}, "docker: permission denied", "usermod -aG docker"},
		"no repository":  {func(s *shop) { order.Repository = "team/other" }, "no repository team/other in us-west-2", "aws ecr create-repository --region us-west-2 --repository-name team/other"},
		"no Dockerfile":  {func(s *shop) { s.code.Paths = nil; _ = os.Remove(filepath.Join(s.code.Dir, "Dockerfile")) }, "no Dockerfile in the code directory", "code.dir"},
		"it is left out": {func(s *shop) { s.code.Paths = nil }, "not among the files of the code", "--dry-run"},
		"a base": {func(s *shop) {
			s.docker.Does(s.t, "build", "pull access denied for x/y, repository does not exist or may require 'docker login'")
		}, "that it begins from, is not there for this machine", "docker login"},
		"a full disk":   {func(s *shop) { s.docker.Does(s.t, "build", "write /var/lib/docker/x: no space left on device") }, "this machine's disk is full", "docker system prune"},
		"another kind":  {func(s *shop) { s.docker.Does(s.t, "build", "exec /bin/sh: exec format error") }, "can't run programs for linux/amd64", "binfmt"},
		"its own fault": {func(s *shop) { s.docker.Does(s.t, "build", "make: *** [all] Error 2") }, "docker build failed (exit code 1)", "last lines"},
		"no right": {func(s *shop) {
			s.docker.Does(s.t, "push", "denied: User: arn:aws:iam::123456789012:user/ann is not authorized to perform: ecr:InitiateLayerUpload on resource: x")
		}, "may not push to repository team/train", "ecr:PutImage"},
		"cut off": {func(s *shop) { s.docker.Does(s.t, "push", "write tcp 1.2.3.4:5: connection reset by peer") }, "could not be reached to the end", "not sent twice"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			order.Repository = "team/train"
			c.set(s)
			e := s.fails()
			order.Repository = "team/train"
			if !strings.Contains(e.Why, c.why) || !strings.Contains(e.Next, c.next) {
				t.Errorf("%q, %q", e.Why, e.Next)
			}
			if text, _ := e.Said(); (text != "") != (len(e.Lines) > 0) {
				t.Errorf("run was %q, and its last lines are %q", text, e.Lines)
			}
			if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
				t.Errorf("left is %v", left)
			}
		})
	}
}

// pythonAlone is a PATH with what the docker of tests needs and no podman.
func pythonAlone(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"python3", "env"} {
		for _, at := range []string{"/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin"} {
			if _, err := os.Stat(filepath.Join(at, name)); err == nil {
				_ = os.Symlink(filepath.Join(at, name), filepath.Join(dir, name))
				break
			}
		}
	}
	return dir
}

// Who gives up a build ends the program, what that has started, and the room.
func TestABuildThatIsGivenUpEndsWithItsChildren(t *testing.T) {
	s := newShop(t)
	s.docker.Does(t, "build", "sleep")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { _, err := s.make(ctx); ended <- err }()
	var pids []int
	for until := time.Now().Add(time.Minute); len(pids) < 2 && time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		for _, line := range s.docker.Calls("build") {
			pids = nil
			for _, word := range strings.Fields(line)[len(strings.Fields(line))-2:] {
				if pid, err := strconv.Atoi(word); err == nil {
					pids = append(pids, pid)
				}
			}
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || len(pids) != 2 {
		t.Fatalf("it ends with %v; the programs are %v", err, pids)
	}
	for _, pid := range pids {
		for until := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil && !zombie(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("process %d goes on", pid)
			}
		}
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
}

func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(text), ") Z ")
}

// The room of a dlwb that was killed is removed by the next one, with the password in it;
// that of one that lives is not.
func TestTheRoomOfAKilledDlwbIsRemovedByTheNext(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	lives, err := newRoom()
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(os.TempDir(), roomName+"dead")
	fresh := filepath.Join(os.TempDir(), roomName+"fresh")
	for _, dir := range []string{dead, fresh} {
		if err := os.MkdirAll(filepath.Join(dir, "login"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-time.Hour)
	for _, dir := range []string{dead, lives.dir} {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
	}
	next, err := newRoom()
	if err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{dead: false, fresh: true, lives.dir: true, next.dir: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v", dir, err)
		}
	}
	lives.remove()
	next.remove()
}

// A base in ECR is brought by a login of its own, which is gone before anything of the
// Dockerfile runs.
func TestABaseInECRIsBroughtByALoginOfItsOwn(t *testing.T) {
	s := newShop(t)
	s.file("Dockerfile", "FROM 763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0 AS x\nCOPY src /app\nFROM docker.io/library/busybox\n")
	s.must()
	pulls := s.docker.Calls("pull")
	if len(pulls) != 1 || !strings.HasPrefix(pulls[0], "pull --platform linux/amd64 763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0 config "+os.TempDir()) {
		t.Errorf("pulled by %q", pulls)
	}
	logins := s.docker.Calls("login")
	if len(logins) != 2 || !strings.Contains(logins[0], " 763104351884.dkr.ecr.us-east-1.amazonaws.com config") || !strings.Contains(logins[1], s.ecr.Host) {
		t.Errorf("logins by %q", logins)
	}
}

// A plan says what would be done, and does nothing.
func TestAPlanSaysWhetherAnImageWouldBeBuilt(t *testing.T) {
	s := newShop(t)
	files := func(context.Context) (cloud.Code, error) { return s.code, nil }
	b, f := Check(t.Context(), s.api, region, order, files)
	if !f.OK || !strings.Contains(f.Text, "Dockerfile and 2 files are built here by docker for linux/amd64, and pushed to "+s.ecr.Host+"/team/train") || b.Digest != "" || !strings.HasSuffix(b.Name(), ":"+b.Tag) {
		t.Errorf("%+v, %s", f, b.Name())
	}
	if len(s.docker.Calls("build"))+len(s.docker.Calls("login")) > 0 {
		t.Error("a plan builds or logs in")
	}
	made := s.must()
	if b, f = Check(t.Context(), s.api, region, order, files); !strings.HasPrefix(f.Text, "unchanged: ") || b != made {
		t.Errorf("%+v, %+v", f, b)
	}
	_, f = Check(t.Context(), s.api, region, Order{"Dockerfile", "none"}, files)
	if f.OK || !strings.Contains(f.Next, "aws ecr create-repository") {
		t.Errorf("%+v", f)
	}
	if _, f = Check(t.Context(), s.api, region, order, nil); f.Result() != cloud.NotChecked {
		t.Errorf("%+v", f)
	}
}

func TestADockerfileAndARepositoryGoTogether(t *testing.T) {
	for in, want := range map[[2]string]string{
		{"./Dockerfile", "team/train"}: "{Dockerfile team/train}", {"docker/gpu.Dockerfile", "x1"}: "{docker/gpu.Dockerfile x1}", {"Containerfile", "a-b_c.d/e"}: "{Containerfile a-b_c.d/e}",
		{"pytorch", ""}: "none", {"", ""}: "none", {"123456789012.dkr.ecr.us-west-2.amazonaws.com/x:1", ""}: "none",
		{"pytorch", "x1"}: "which is none", {"", "x1"}: "there is no machines.image", {"Dockerfile", ""}: "create-repository",
		{"../Dockerfile", "x1"}: "not in the code directory", {"/etc/Dockerfile", "x1"}: "not in the code directory",
		{"Dockerfile", "123456789012.dkr.ecr.us-west-2.amazonaws.com/x:1"}: "without a registry in front", {"Dockerfile", "X"}: "no name of a repository", {"Dockerfile", "-x"}: "no name of a repository",
	} {
		got := "none"
		if o, err := Ordered(in[0], in[1]); err != nil {
			got = err.Error() + "; " + err.(*Error).Next
		} else if o != nil {
			got = fmt.Sprint(*o)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// What a program prints is taken apart into lines of a bounded length, whatever it is.
func TestOutputWithoutAnEndIsBounded(t *testing.T) {
	var told []string
	w := &lineWriter{tell: func(line string) { told = append(told, line) }}
	for range 1000 {
		_, _ = w.Write([]byte(strings.Repeat("x", 10_000)))
	}
	if len(w.part) != mostLine {
		t.Errorf("%d bytes are kept", len(w.part))
	}
	_, _ = w.Write([]byte("\rsecond\n\n  third"))
	w.flush()
	if len(told) != 3 || len(told[0]) != mostLine || told[1] != "second" || told[2] != "third" {
		t.Errorf("%d lines: %.50q", len(told), told)
	}
	for range 100 {
		_, _ = w.Write([]byte("l\n"))
	}
	if len(w.last) != mostLines {
		t.Errorf("%d lines are kept", len(w.last))
	}
}

// An engine that is slow is not known to be missing: a plan does not fail for it.
func TestAnEngineThatDoesNotAnswerInTimeIsNotSaidToBeMissing(t *testing.T) {
	dir := t.TempDir()
	if err := testprogram.Write(filepath.Join(dir, "docker"), []byte("#!/bin/sh\nexec /bin/sleep 600\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	_, err := answering(t.Context(), 50*time.Millisecond)
	if f := cloud.FromError("image", err, ""); err == nil || f.Result() != cloud.NotChecked || !strings.Contains(f.Text, "no answer within") || !strings.Contains(f.Next, "start its service") {
		t.Errorf("%v: %+v", err, f)
	}
}
