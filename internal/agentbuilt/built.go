//go:build unix

// Package agentbuilt gives tests an agent where this tree was built without:
// whoever imports it has one that was built from the tree as it is.
package agentbuilt

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/dlwb/dlwb/internal/agentbin"
	"github.com/dlwb/dlwb/internal/testprogram"
)

func init() {
	if _, err := agentbin.For(runtime.GOOS, runtime.GOARCH); err == nil {
		return
	}
	path, err := build()
	if err != nil {
		panic(fmt.Sprintf("build the agent for the tests: %v", err))
	}
	agentbin.Bring(path)
	// Packed here: no test's clock runs yet, and with -race it takes seconds.
	_, _ = agentbin.For(runtime.GOOS, runtime.GOARCH)
}

// build builds the agent into the user's cache, where each tree has its own: the
// tests of two may run at a time.
func build() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "dlwb-tests")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for !exists(filepath.Join(here, "go.mod")) && here != filepath.Dir(here) {
		here = filepath.Dir(here)
	}
	path := filepath.Join(dir, fmt.Sprintf("agent-%.8x", sha256.Sum256([]byte(here))))
	temp := fmt.Sprintf("%s.%d", path, os.Getpid())
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", temp, "github.com/dlwb/dlwb/remote/agent/dlwb-agent")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, os.Rename(temp, path)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Path is the program of the agent for this machine, written into a directory.
func Path(dir string) (string, error) {
	a, err := agentbin.For(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return "", err
	}
	plain, err := a.Plain()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, a.Name)
	return path, testprogram.Write(path, plain, 0o755)
}
