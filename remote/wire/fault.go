package wire

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/libp2p/go-yamux/v5"
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

// ProtocolError says that what the other side sent makes no sense. It is final: a
// new connection leads to the same agent.
type ProtocolError struct {
	Who string // empty: it is not known which side it is
	Err error
}

// Error says who did what.
func (e *ProtocolError) Error() string {
	return cmp.Or(e.Who, "the other side") + " broke the protocol: " + e.Err.Error()
}

// Unwrap is what it did.
func (e *ProtocolError) Unwrap() error { return e.Err }

// Brokenf makes a ProtocolError of a caller about its agent.
func Brokenf(format string, args ...any) error {
	return &ProtocolError{theAgent, fmt.Errorf(format, args...)}
}

// Who the other side of a session is.
const (
	theAgent  = "the agent there"
	theCaller = "dlwb"
)

// nonsense are errors of yamux about what has come.
var nonsense = []error{yamux.ErrInvalidVersion, yamux.ErrInvalidMsgType, yamux.ErrRecvWindowExceeded,
	yamux.ErrDuplicateStream, yamux.ErrUnexpectedFlag, errCrumbs}

// broken makes an error of the session one that says who is to blame for it.
func (s *Session) broken(err error) error {
	for _, one := range nonsense {
		if errors.Is(err, one) {
			return &ProtocolError{s.other, one}
		}
	}
	return err
}
