//go:build !linux && !darwin

package sshconn

import "errors"

func setMaxSegment(uintptr, int) error { return errors.ErrUnsupported }
