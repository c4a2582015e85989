package engine

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/internal/testprogram"
)

// Two nodes of one machine are two nodes for MPI, too; see TestFrameworks for what comes
// of it with a real one.
func TestNodesOfOneMachineHaveNamesOfTheirOwn(t *testing.T) {
	for _, name := range []string{"mpi", "horovod"} {
		local := []Node{{Host: "127.0.0.1"}, {Host: "127.0.0.1"}}
		for want, nodes := range map[string][]Node{"PMIX_HOSTNAME=node1": local, "": cluster(2, 0)} {
			plan, err := Make(name, nodes, Job{Command: []string{"t.py"}})
			if err != nil {
				t.Fatal(err)
			}
			own := slices.Contains(plan.Nodes[1][0].Env, "PMIX_HOSTNAME=node1")
			if own != (want != "") || isSet(plan.Nodes[0][0].Env, "PMIX_HOSTNAME") {
				t.Errorf("%s on %+v: %+v", name, nodes, plan.Nodes)
			}
		}
	}
}

// What each mpirun says of itself is as its makers have it print.
func TestAnMPIThatCanNotBeUsedIsRefusedBeforeItHangs(t *testing.T) {
	for said, want := range map[string]string{
		"mpirun (Open MPI) 3.1.3\n\nReport bugs to http://www.open-mpi.org/community/help/": "Open MPI 3.1.3, which is known to hang",
		"HYDRA build details:\n    Version:                                 4.0.2":          "is not that of Open MPI",
		"Intel(R) MPI Library for Linux* OS, Version 2021.10 Build 20230619":                "is not that of Open MPI",
		"mpirun (Open MPI) 3.1.30": "", "mpirun (Open MPI) 4.1.4": "", "mpirun (Open MPI) 5.0.3": "", "mpirun (IBM Spectrum MPI) 10.3.1.00rtm4": "",
	} {
		dir := t.TempDir()
		fake := "#!/bin/sh\nif [ \"$1\" = --version ]; then cat <<'END'\n" + said + "\nEND\nelse echo began; fi\n"
		if err := testprogram.Write(filepath.Join(dir, "mpirun"), []byte(fake), 0o755); err != nil {
			t.Fatal(err)
		}
		c := exec.Command("sh", "-c", mpiRun, "mpirun.sh", "-np", "2", "true")
		c.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "DLWB_RUN_DIR="+dir)
		out, err := c.CombinedOutput()
		text := strings.TrimSpace(string(out))
		if want == "" && (err != nil || text != "began") || want != "" && (err == nil || !strings.Contains(text, want) || strings.Contains(text, "began")) {
			t.Errorf("%q: %v, %s", said, err, text)
		}
	}
}
