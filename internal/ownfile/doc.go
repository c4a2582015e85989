// Package ownfile answers one question: can another user of this machine change
// what lies at a path? State, keys and settings are only read from where the
// answer is no.
//
// A path is safe when the user owns it, nobody else may write to it, and no
// directory or link on the way to it could be replaced by somebody else: each
// belongs to the user or to root, and is writable by no other, save for
// directories like /tmp, whose sticky bit keeps others from replacing what is
// not theirs. Windows guards a user's profile by access lists; nothing is
// checked there.
package ownfile

import "fmt"

// Error says what is wrong with a path, and how to mend it.
type Error struct {
	Path string // what was asked about
	At   string // the directory, link or file that is at fault
	Why  string
	Next string
}

func (e *Error) Error() string {
	if e.At == e.Path {
		return fmt.Sprintf("%s is not safe to use: it %s; %s", e.Path, e.Why, e.Next)
	}
	return fmt.Sprintf("%s is not safe to use: %s %s; %s", e.Path, e.At, e.Why, e.Next)
}
