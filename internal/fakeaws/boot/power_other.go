//go:build !unix

package boot

import (
	"errors"
	"os"
)

var terminate = os.Kill

func (r *Rig) hearPower() (stop func(), err error) { return nil, errors.ErrUnsupported }
