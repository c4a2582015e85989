package planning

import (
	"strings"
	"testing"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/remote/environment"
)

// Before there are nodes a plan says what Horovod comes to with MPI and without it; a
// command that asks for Gloo, and a service that has mpirun, leave one way.
func TestThePlanOfHorovodDependsOnMPI(t *testing.T) {
	for text, want := range map[string]string{
		"provider: hosts\nmachines: {hosts: [a, b]}\nrun: {engine: horovod, command: t.py}\n":                        "mpirun, if Horovod can use MPI on node0; rank, if Horovod can't use MPI on node0",
		"provider: hosts\nmachines: {hosts: [a, b]}\nrun: {command: horovodrun -np 2 python t.py}\n":                 "mpirun, if Horovod can use MPI on node0; rank, if Horovod can't use MPI on node0",
		"provider: hosts\nmachines: {hosts: [a, b]}\nrun: {command: horovodrun --gloo -np 2 python t.py}\n":          "rank",
		"provider: kubernetes\nmachines: {count: 2}\nrun: {command: horovodrun --gloo -np 2 python t.py}\n":          "mpirun",
		"provider: hosts\nmachines: {hosts: [a, b]}\nrun: {engine: mpi, command: t.py}\n":                            "mpirun",
		"provider: local\nmachines: {count: 2}\nenvironment: {venv: r.txt}\nrun: {engine: horovod, command: t.py}\n": "mpirun, if Horovod can use MPI on node0; rank, if Horovod can't use MPI on node0",
	} {
		p, err := profiles.Parse("dlwb.yaml", []byte("name: x\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		base := Site{Nodes: make([]engine.Node, 2), Python: namePython, Run: nameRun, PortIs: namePort}
		plan := &Plan{Profile: p, Provider: p.Provider}
		all, err := launches(p, base, [][]branch{plan.mpiConditions(t.Context(), base)})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range all {
			said := "rank"
			if strings.Contains(l.Commands[0].Command, "mpirun.sh") {
				said = "mpirun"
			}
			if l.When != "" {
				said += ", if " + l.When
			}
			got = append(got, said)
		}
		if strings.Join(got, "; ") != want {
			t.Errorf("%s%q, want %s", text, got, want)
		}
	}
}

func TestANodeIsAskedOfMPIInTheEnvironmentOfTheRunWithoutItsSecrets(t *testing.T) {
	p := &profiles.Profile{Run: profiles.Run{Env: []profiles.Var{{Name: "PATH", Value: "/opt/mpi/bin"}, {Name: "KEY", Value: "sesame", Secret: true}}}}
	line := HorovodLine(p, environment.Result{Python: "/v/bin/python", Env: []string{"A=b c"}, Wrap: []string{"/box/run"}}, "r1")
	if !strings.HasPrefix(line, "env 'A=b c' PATH=/opt/mpi/bin /box/run /v/bin/python -c ") || strings.Contains(line, "sesame") || strings.Contains(line, "KEY") {
		t.Error(line)
	}
}
