//go:build !unix

package testbed

import "os"

func lock(*os.File) error { return ErrMissing }
