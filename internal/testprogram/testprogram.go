// Package testprogram writes the programs that tests execute.
package testprogram

import (
	"os"
	"syscall"
)

// Write writes a file that is executed afterwards, by a test or by what it tests, as
// os.WriteFile does. A child that another goroutine forks meanwhile holds the file open
// for writing until it executes something itself, and a file that is open for writing
// is not executed ("text file busy", ETXTBSY in execve(2)): so nobody forks meanwhile.
func Write(path string, text []byte, mode os.FileMode) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, text, mode)
}
