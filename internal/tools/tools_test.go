// Package tools holds the scripts of the Makefile; only its tests are Go.
package tools

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/testprogram"
)

// script runs one of the scripts with programs of the test's own in front of
// PATH, or instead of it.
func script(t *testing.T, name string, programs map[string]string, rest string, args ...string) (code int, said string) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh")
	}
	bin := t.TempDir()
	for program, text := range programs {
		if err := testprogram.Write(filepath.Join(bin, program), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(sh, append([]string{file}, args...)...)
	c.Dir, c.Env = "../..", append(os.Environ(), "PATH="+bin+rest)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

// bare is all that need.sh itself calls; what the tests need is not there.
func bare(more map[string]string) map[string]string {
	programs := map[string]string{"sh": `exec /bin/sh "$@"`}
	for name, text := range more {
		programs[name] = text
	}
	return programs
}

func TestWhatIsMissingIsNamedWhereItCannotBeInstalled(t *testing.T) {
	for who, programs := range map[string]map[string]string{
		"not root": bare(map[string]string{"id": "echo 1000", "apt-get": "echo called; exit 9"}),
		"no apt":   bare(map[string]string{"id": "echo 0"}),
	} {
		code, said := script(t, "need.sh", programs, "")
		if code != 1 || strings.Contains(said, "called") {
			t.Errorf("%s: exit code %d, %s", who, code, said)
		}
		for _, want := range []string{"what is missing here: ", "tmux", "busybox", "shellcheck", "sudo apt-get install "} {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q is not said in %s", who, want, said)
			}
		}
	}
}

func TestWhatIsMissingIsInstalledWhereThatCanBeDone(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	programs := bare(map[string]string{"id": "echo 0", "apt-get": `echo "$@" >> ` + log})
	if code, said := script(t, "need.sh", programs, ""); code != 0 || !strings.Contains(said, "installing for the tests: ") {
		t.Errorf("exit code %d, %s", code, said)
	}
	calls, err := os.ReadFile(log)
	if err != nil || !strings.HasPrefix(string(calls), "update ") || !strings.Contains(string(calls), "install -qq -y --no-install-recommends openssh-client") &&
		!strings.Contains(string(calls), " tmux") {
		t.Errorf("%s, %v", calls, err)
	}
	programs["apt-get"] = "exit 100"
	if code, _ := script(t, "need.sh", programs, ""); code != 100 {
		t.Errorf("apt-get failed, and need.sh exits with %d", code)
	}
}

func TestALargerRigNeedsItsOwnPackages(t *testing.T) {
	programs := bare(map[string]string{"id": "echo 1000", "grep": `exec /bin/grep "$@"`})
	for rig, want := range map[string]string{"podman": "busybox podman runc", "slurm": "slurm-wlm slurmdbd mariadb-server munge curl tmux", "arm64": "qemu-user-static"} {
		if code, said := script(t, "need.sh", programs, "", rig); code != 1 || !strings.HasSuffix(said, "sudo apt-get install "+want+" \n") {
			t.Errorf("%s: exit code %d, %s", rig, code, said)
		}
	}
	// What else Horovod is built with are files, which this machine may have.
	if code, said := script(t, "need.sh", programs, "", "frameworks"); code != 1 || !strings.Contains(said, "sudo apt-get install openmpi-bin libopenmpi-dev cmake g++ make ") {
		t.Errorf("frameworks: exit code %d, %s", code, said)
	}
	if code, _ := script(t, "need.sh", programs, "", "none"); code != 2 {
		t.Errorf("a rig that is none: exit code %d", code)
	}
}

func TestNothingIsSaidWhereNothingIsMissing(t *testing.T) {
	text, err := os.ReadFile("need.sh")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"id": "echo 1000"}
	for _, m := range regexp.MustCompile(`command -v (\S+)`).FindAllStringSubmatch(string(text), -1) {
		if m[1] != "apt-get" {
			all[m[1]] = "exit 0"
		}
	}
	if len(all) < 10 {
		t.Fatalf("need.sh looks for these only: %v", all)
	}
	for _, module := range []string{"torch", "ensurepip"} {
		if exec.Command("/usr/bin/python3", "-c", "import "+module).Run() != nil {
			t.Skip("NOT RUN: /usr/bin/python3 has no " + module)
		}
	}
	if code, said := script(t, "need.sh", bare(all), ""); code != 0 || said != "" {
		t.Errorf("exit code %d, %s", code, said)
	}
}

func TestAFuzzTargetThatFailsFailsTheRound(t *testing.T) {
	path := string(os.PathListSeparator) + os.Getenv("PATH")
	if code, said := script(t, "fuzz.sh", map[string]string{"go": "exit 1"}, path, "1s"); code == 0 || strings.Count(said, "==") != 1 {
		t.Errorf("exit code %d, %s", code, said)
	}
	code, said := script(t, "fuzz.sh", map[string]string{"go": "exit 0"}, path, "1s")
	if code != 0 || strings.Count(said, "==") < 10 || !strings.Contains(said, "profiles/fuzz_test.go FuzzParse") {
		t.Errorf("exit code %d, %s", code, said)
	}
}

func TestAKnownFaultFailsTheCheckWhereItIsCalled(t *testing.T) {
	const away = `echo 'govulncheck: dial tcp: no such host'; exit 1`
	const found, clean = `echo GO-2026-0001; exit 3`, `echo none; exit 0`
	for name, c := range map[string]struct {
		modules, calls string
		code           int
		says           string
	}{
		"in no module":      {clean, found, 0, "govulncheck: clean"},
		"not called":        {found, clean, 0, "govulncheck: clean"},
		"called":            {found, found, 1, "GO-2026-0001"},
		"nobody to ask":     {away, clean, 0, "govulncheck: NOT RUN, its database can't be reached: govulncheck: dial tcp"},
		"lost in the midst": {found, away, 0, "govulncheck: NOT RUN"},
	} {
		code, said := script(t, "check.sh", map[string]string{
			"go":         `case $* in "run vuln -scan module") ` + c.modules + ` ;; "run vuln ./...") ` + c.calls + ` ;; esac`,
			"gofmt":      "",
			"shellcheck": "",
		}, string(os.PathListSeparator)+os.Getenv("PATH"), "static", "vuln")
		if code != c.code || !strings.Contains(said, c.says) || (code != 0) == strings.Contains(said, "shellcheck: clean") {
			t.Errorf("%s: exit code %d, %s", name, code, said)
		}
	}
}

func TestMakeTestLeavesOutOnlyWhatAnotherTargetRuns(t *testing.T) {
	fake := map[string]string{"go": `echo "light=$DLWB_LIGHT long=$DLWB_LONG $*"`}
	for asked, light := range map[string]bool{"": true, "RACE=1": false, "TIMES=2": false} {
		t.Run(asked, func(t *testing.T) {
			for _, name := range []string{"RACE", "TIMES", "DLWB_LIGHT"} { // what runs this test may have them
				t.Setenv(name, "")
			}
			if name, value, ok := strings.Cut(asked, "="); ok {
				t.Setenv(name, value)
			}
			code, said := script(t, "test.sh", fake, ":"+os.Getenv("PATH"))
			if code != 0 || strings.Contains(said, "light=1 ") != light || strings.Contains(said, "NOT RUN, to be light: ") != light {
				t.Errorf("exit code %d: %s", code, said)
			}
		})
	}
	_, said := script(t, "long.sh", fake, ":"+os.Getenv("PATH"), "stories")
	for dir, test := range map[string]string{"./cli": "TestDlwbMayBeKilledAtAnyMoment", "./internal/ec2story": "TestCrashMatrix"} {
		if !regexp.MustCompile(`(?m)^light= long= test .* -run \^\(.*\b` + test + `\b.*\)\$ ` + dir + `$`).MatchString(said) {
			t.Errorf("make test-stories does not run %s of %s: %s", test, dir, said)
		}
	}
	for _, names := range regexp.MustCompile(`-run \^\((.*)\)\$`).FindAllStringSubmatch(said, -1) {
		for _, name := range strings.Split(names[1], "|") { // what a helper of several tests left out would run nowhere
			if !strings.HasPrefix(name, "Test") {
				t.Errorf("%q is no test", name)
			}
		}
	}
}

func TestTheLongTargetRunsWhatSamplesWhole(t *testing.T) {
	code, said := script(t, "long.sh", map[string]string{"go": `echo "$DLWB_LONG $*"`}, ":"+os.Getenv("PATH"))
	for dir, test := range map[string]string{"./remote": "TestALyingAgentHoldsNoCallUpAndCostsLittle", "./remote/agent/supervise": "TestEveryEndOfARankIsRecordedAsItWas"} {
		if !regexp.MustCompile(`(?m)^1 test .* -run \^\(.*\b` + test + `\b.*\)\$ ` + dir + `$`).MatchString(said) {
			t.Errorf("%s of %s does not run: %s", test, dir, said)
		}
	}
	if code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}
	if code, _ := script(t, "long.sh", map[string]string{"go": "exit 1"}, ":"+os.Getenv("PATH")); code == 0 {
		t.Error("what fails is no failure")
	}
}
