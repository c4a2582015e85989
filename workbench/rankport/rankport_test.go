package rankport

import (
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

func TestThePortOfTheRanksIsNoneThatAConnectionMayTake(t *testing.T) {
	seen := map[int]bool{}
	for range 5 {
		out, err := exec.Command("sh", "-c", portLine("python3", 3, portsToTry(0, 3))).Output()
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		port, err := strconv.Atoi(first)
		if err != nil || port < 20000 || port > 29999 {
			t.Errorf("port %q", out)
		}
		seen[port] = true
	}
	if len(seen) == 1 {
		t.Errorf("five times the same port: %v", seen)
	}
}

func TestATakenPortIsPassedOver(t *testing.T) {
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	line := portLine("python3", 1, portsToTry(taken.Addr().(*net.TCPAddr).Port, 1))
	if out, err := exec.Command("sh", "-c", line).CombinedOutput(); err == nil || !strings.Contains(string(out), "in use") {
		t.Errorf("of a taken port it says %v: %q", err, out)
	}
	out, err := exec.Command("sh", "-c", fmt.Sprint(line, " 0")).Output()
	if err != nil || strings.TrimSpace(string(out)) != "0" {
		t.Errorf("the next one is not tried: %v: %q", err, out)
	}
}

// An engine that needs several ports gets none of them taken.
func TestEveryPortOfARowMustBeFree(t *testing.T) {
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	out, err := exec.Command("sh", "-c", portLine("python3", 4, []int{port - 3})).CombinedOutput()
	if err == nil {
		t.Errorf("the last of four is taken, and it says %q", out)
	}
}
