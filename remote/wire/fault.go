package wire

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// The kinds of faults that a caller may tell apart.
const (
	Failed     = "failed"     // what the text says
	Absent     = "absent"     // it is not there
	Refused    = "refused"    // it may not be done
	Wrong      = "wrong"      // the request makes no sense: a fault of the caller
	Full       = "full"       // no room on the disk, or a quota
	Unreadable = "unreadable" // permissions
	ReadOnly   = "read-only"  // a disk that can't be written
	Unknown    = "unknown"    // there is no such service
)

// faultText bounds a fault's text.
const faultText = 4 << 10

// Fault is an error of the other side, in its words. From a node its text is not
// yet fit for a screen.
type Fault struct {
	Kind string `cbor:"k"`
	Text string `cbor:"t"`
}

// Error is the text.
func (f *Fault) Error() string { return f.Text }

// Faultf makes a fault.
func Faultf(kind, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Text: fmt.Sprintf(format, args...)}
}

func (f *Fault) bounded() *Fault {
	if len(f.Text) > faultText {
		f.Text = f.Text[:faultText] + "…"
	}
	if len(f.Kind) > 32 {
		f.Kind = Failed
	}
	return f
}

// faultOf makes any error one that can be sent.
func faultOf(err error) *Fault {
	var f *Fault
	switch {
	case errors.As(err, &f):
		return &Fault{f.Kind, err.Error()}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &Fault{Full, err.Error()}
	case errors.Is(err, syscall.EROFS):
		return &Fault{ReadOnly, err.Error()}
	case errors.Is(err, fs.ErrNotExist):
		return &Fault{Absent, err.Error()}
	case errors.Is(err, fs.ErrPermission):
		return &Fault{Unreadable, err.Error()}
	}
	return &Fault{Failed, err.Error()}
}

// Is reports whether an error is a fault of a kind.
func Is(err error, kind string) bool {
	var f *Fault
	return errors.As(err, &f) && f.Kind == kind
}
