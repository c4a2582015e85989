package sshdtest

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"testing"
)

func TestNothingIsLeftOfAHomeInWhichAProcessStillWrites(t *testing.T) {
	var home string
	ended := make(chan error, 1)
	t.Run("a session that ends late", func(t *testing.T) {
		home = Start(t).Home
		late := exec.Command("sh", "-c", "sleep 0.5; mkdir -p "+home+"; echo late >"+home+"/file")
		late.Dir = home
		if err := late.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { ended <- late.Wait() }()
	})
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(home); !errors.Is(err, fs.ErrNotExist) {
		_ = os.RemoveAll(home)
		t.Errorf("the home is there: %v", err)
	}
}
