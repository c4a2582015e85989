// Command gen writes docs/engines.md.
package main

import (
	"log"
	"os"

	"github.com/dlwb/dlwb/internal/frameworks"
)

func main() {
	r, err := frameworks.Stored()
	if err == nil {
		err = os.WriteFile("../../docs/engines.md", []byte(r.Page()), 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}
