//go:build linux

package hostsstory

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dlwb/dlwb/internal/sample"
	"github.com/dlwb/dlwb/internal/testbed"
)

// oneOfTwo is a cluster of somebody who is not alone in a home.
func oneOfTwo(name, hosts, environment string) string {
	return fmt.Sprintf("name: %s\nprovider: hosts\nmachines: {hosts: [%s]}\nenvironment: %s\nrun: {engine: plain, command: train.py}\nresults: {paths: [outputs/]}\n", name, hosts, environment)
}

// Two laptops have a cluster each, on hosts of one home: they come up at once, one goes
// while the other trains, comes again while that one is set up anew, and goes last. Neither
// loses anything of its own, and nothing is left.
func TestTwoClustersInOneHome(t *testing.T) {
	sample.Leave(t)
	bed := realHosts(t, 4)
	home, err := bed.ShareHome(0, 1, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	before := whole(t, home)
	keys := mustRead(t, filepath.Join(home, ".ssh", "authorized_keys"))
	const venv = "{venv: requirements.txt}"
	one := newLaptop(t, bed.SSHConfig(), oneOfTwo("ones", hostNames(0, 2), venv), together)
	two := newLaptop(t, bed.SSHConfig(), oneOfTwo("twos", hostNames(2, 2), venv), together)
	for _, l := range []*laptop{one, two} {
		write(t, filepath.Join(l.home, "code", "requirements.txt"), "# nothing\n")
		write(t, filepath.Join(l.home, "code", "hold"), "")
	}
	release := func(cluster string) {
		t.Helper()
		if err := os.Remove(filepath.Join(home, "dlwb", cluster, "code", "hold")); err != nil {
			t.Fatal(err)
		}
	}
	trainsAll := func(from int) {
		t.Helper()
		for host := from; host < from+2; host++ {
			until(t, time.Minute, testbed.Name(host)+" trains", func() bool { return trainsOn(t, bed, host) })
		}
	}
	ones, twos := one.start("run", "--json"), two.start("run", "--json")
	one.await(ones, 3*time.Minute, "the start of a run", called("run_started"))
	two.await(twos, 3*time.Minute, "the start of the other run", called("run_started"))
	trainsAll(0)
	trainsAll(2)

	// A third one finds no host, and no namesake of a cluster comes beside it.
	three := newLaptop(t, bed.SSHConfig(), oneOfTwo("threes", hostNames(1, 2), "system"), together)
	if code, text := three.do(time.Minute, "run", "--plain"); code == 0 || !strings.Contains(text, "cluster ones of") {
		t.Errorf("hosts were taken twice: %d\n%s", code, text)
	}

	// The first goes while the second trains.
	if code, text := one.do(2*time.Minute, "down", "ones"); code != 0 {
		t.Errorf("down: %d\n%s", code, text)
	}
	one.end(ones, time.Minute)
	for host := range 2 {
		if trainsOn(t, bed, host) {
			t.Errorf("%s still trains", testbed.Name(host))
		}
	}
	trainsAll(2)
	if _, err := os.Stat(filepath.Join(home, "dlwb", "ones")); !os.IsNotExist(err) {
		t.Errorf("~/dlwb/ones is left: %v", err)
	}
	namesake := newLaptop(t, bed.SSHConfig(), oneOfTwo("twos", hostNames(0, 2), "system"), together)
	if code, text := namesake.do(time.Minute, "run", "--plain"); code == 0 || !strings.Contains(text, "another cluster of the name twos") {
		t.Errorf("two clusters of one name are in one home: %d\n%s", code, text)
	}
	if code, text := two.do(time.Minute, "exec", "twos", "--", "hostname"); code != 0 || !strings.Contains(text, testbed.Name(2)) {
		t.Errorf("exec: %d\n%s", code, text)
	}
	release("twos")
	if code := two.end(twos, time.Minute); code != 0 {
		t.Errorf("the second's run ended with %d", code)
	}
	hasCome(t, two, twos, 2)

	// It comes again beside the second, which begins anew meanwhile; then the second goes.
	ones, twos = one.start("run", "--json"), two.start("run", "--json")
	one.await(ones, 3*time.Minute, "the start of a run", called("run_started"))
	two.await(twos, 3*time.Minute, "the start of the other run", called("run_started"))
	trainsAll(0)
	trainsAll(2)
	release("twos")
	if code := two.end(twos, time.Minute); code != 0 {
		t.Errorf("the second's next run ended with %d", code)
	}
	if code, text := two.do(2*time.Minute, "down", "twos"); code != 0 {
		t.Errorf("down: %d\n%s", code, text)
	}
	trainsAll(0)
	release("ones")
	if code := one.end(ones, time.Minute); code != 0 {
		t.Errorf("the first's next run ended with %d", code)
	}
	hasCome(t, one, ones, 0)
	if code, text := one.do(2*time.Minute, "down", "ones"); code != 0 {
		t.Errorf("down: %d\n%s", code, text)
	}
	if after := whole(t, home); after != before {
		t.Errorf("left in the shared home:\n%s\nbefore:\n%s", after, before)
	}
	if now := mustRead(t, filepath.Join(home, ".ssh", "authorized_keys")); now != keys {
		t.Errorf("authorized_keys is changed: %q", now)
	}
	for host := range 4 {
		if out, err := bed.Run(host, "ls -d /var/tmp/dlwb-* /tmp/dlwb-* /dev/shm/dlwb-* 2>/dev/null || true"); err != nil || strings.TrimSpace(out) != "" {
			t.Errorf("left on %s: %s, %v", testbed.Name(host), out, err)
		}
	}
}

// hasCome says that what each of two hosts has printed and left came home, and nothing of
// the other cluster's.
func hasCome(t *testing.T, l *laptop, run *said, from int) {
	t.Helper()
	id := fmt.Sprint(l.await(run, time.Second, "the start", called("run_started"))["run"])
	dir := filepath.Join(l.home, "state", "runs", id)
	for rank := range 2 {
		want := fmt.Sprintf("rank %d on %s of run %s ", rank, testbed.Name(from+rank), id)
		if log := mustRead(t, filepath.Join(dir, fmt.Sprintf("rank-%d.log", rank))); !strings.Contains(log, want) {
			t.Errorf("the log of rank %d does not say %q: %s", rank, want, log)
		}
		own := filepath.Join(dir, "results", fmt.Sprintf("node%d", rank), "own")
		if text := mustRead(t, own); text != testbed.Name(from+rank) {
			t.Errorf("%s is of %s", own, text)
		}
	}
}

// A rank fails while another cluster stands in the same home: the nodes of its cluster stop
// each other, also where that is the second and no dlwb watches; those of the other go on.
func TestAFailureInOneHomeIsOneClustersOwn(t *testing.T) {
	sample.Leave(t)
	bed := realHosts(t, 4)
	home, err := bed.ShareHome(0, 1, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	fails := together + "    if rank == '1' and os.path.exists('fail'):\n        time.sleep(2)\n        sys.exit(7)\n"
	one := newLaptop(t, bed.SSHConfig(), oneOfTwo("ones", hostNames(0, 2), "system"), fails)
	two := newLaptop(t, bed.SSHConfig(), oneOfTwo("twos", hostNames(2, 2), "system"), fails)
	for _, l := range []*laptop{one, two} {
		write(t, filepath.Join(l.home, "code", "hold"), "")
	}
	ones := one.start("run", "--json")
	one.await(ones, time.Minute, "the start of a run", called("run_started"))
	write(t, filepath.Join(two.home, "code", "fail"), "")
	if code := two.end(two.start("run", "--json"), 2*time.Minute); code != 7 {
		t.Errorf("the second's run ended with %d, not with the 7 of its rank", code)
	}
	until(t, time.Minute, "the second's ranks are ended", func() bool { return !trainsOn(t, bed, 2) && !trainsOn(t, bed, 3) })
	if err := os.Remove(filepath.Join(two.home, "code", "fail")); err != nil {
		t.Fatal(err)
	}
	if code, text := two.do(2*time.Minute, "run", "--detach"); code != 0 {
		t.Fatalf("the second is begun again: %d\n%s", code, text)
	}
	until(t, time.Minute, "the second's ranks train again", func() bool { return trainsOn(t, bed, 2) && trainsOn(t, bed, 3) })
	write(t, filepath.Join(home, "dlwb", "twos", "code", "fail"), "")
	until(t, time.Minute, "the second's ranks are ended with nobody watching", func() bool { return !trainsOn(t, bed, 2) && !trainsOn(t, bed, 3) })
	if !trainsOn(t, bed, 0) || !trainsOn(t, bed, 1) {
		t.Error("the first's ranks were ended, too")
	}
	if code, text := two.do(2*time.Minute, "down", "twos"); code != 0 {
		t.Errorf("down: %d\n%s", code, text)
	}
	if code, text := one.do(2*time.Minute, "down", "ones"); code != 0 {
		t.Errorf("down: %d\n%s", code, text)
	}
	one.end(ones, time.Minute)
}
