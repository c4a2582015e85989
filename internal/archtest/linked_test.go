package archtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The linker leaves out methods that nobody calls, as long as no code asks for a
// method by a name that is known at run time only. One text/template in the
// program is such code, and all operations of all AWS services come with it:
// once that was 33 MB of 90.
func TestProgramHoldsNoOperationThatItNeverCalls(t *testing.T) {
	program := filepath.Join(t.TempDir(), "dlwb")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	linked, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	const client = "aws-sdk-go-v2/service/ec2.(*Client)."
	if !bytes.Contains(linked, []byte(client+"RunInstances")) {
		t.Fatal("the names of the operations are no longer found in the program: look for them in another way")
	}
	if bytes.Contains(linked, []byte(client+"AcceptVpcPeeringConnection")) {
		t.Error("the program holds operations that it never calls; who asks for methods by name is told by:\n" +
			"go build -ldflags=-dumpdep -o /dev/null . 2>&1 | grep ReflectMethod")
	}
}
