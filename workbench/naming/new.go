package naming

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"
)

// NewLife makes the id under which the resources of one life are known to their
// provider.
func NewLife() string {
	var b [6]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// NewRun makes an id that sorts by time and is short enough to type.
func NewRun(profile string) string {
	var b [2]byte
	_, _ = rand.Read(b[:])
	return fmt.Sprintf("%s-%s-%s", profile, time.Now().Format("0102-150405"), hex.EncodeToString(b[:]))
}
