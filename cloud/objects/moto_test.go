package objects

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The same on another S3 that nobody here made.
func TestMotoKeepsWhatIsSaved(t *testing.T) {
	program := os.Getenv("DLWB_MOTO")
	if program == "" {
		t.Skip("make test-moto runs this, with moto from PyPI")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close()
	cmd := exec.Command(program, "-p", port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	at := "http://127.0.0.1:" + port
	for end := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		if reply, err := http.Get(at + "/moto-api/"); err == nil {
			_ = reply.Body.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal("moto does not answer")
		}
	}
	t.Setenv("DLWB_TEST_S3", at)
	t.Run("saved and loaded", TestWhatIsSavedComesBackByteForByte)
	t.Run("damaged", TestWhatIsNotAsItsManifestSaysIsNotLoaded)
	t.Run("no bucket", TestABucketThatIsNotThereIsNamedWithWhatToDo)
}
