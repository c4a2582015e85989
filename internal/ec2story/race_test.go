//go:build race

package ec2story

import "os"

// raced makes the dlwb that is tested look for races too. They end it with
// exit code 66.
var raced = []string{"-race"}

func init() { os.Setenv("GORACE", "atexit_sleep_ms=0") } // else every node takes a second to end
