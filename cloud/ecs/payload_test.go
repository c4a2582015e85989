package ecs

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dlwb/dlwb/cloud"
)

// Ray unpacks its packages by Python's zipfile.
func TestAnEmptyDirectoryOfTheCodeIsInThePackage(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("NOT RUN: there is no python3")
	}
	dir, at := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "train.py"), []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, body, err := packed(cloud.Job{Run: "r", Code: cloud.Code{Dir: dir, Paths: []string{"train.py"}, Empty: []string{"runs/ckpt"}}}, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(at, "p.zip")
	if err := os.WriteFile(file, body, 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(python, "-m", "zipfile", "-e", file, at).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if err := os.WriteFile(filepath.Join(at, "runs", "ckpt", "1.pt"), []byte("x"), 0o644); err != nil {
		t.Errorf("a run can't write there: %v", err)
	}
}
