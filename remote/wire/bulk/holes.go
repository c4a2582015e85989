package bulk

import "io"

// holeBlock is from how many zeros on a hole is left in their place: no usual file
// system stores less than a block of that size.
const holeBlock = 4 << 10

// WriteSparse writes bytes at an offset of a file that has nothing from there on, and
// leaves holes where whole blocks are zero. The file may be shorter than what was
// written when it ends with such a block: who has written all of it truncates it to its
// size.
func WriteSparse(to io.WriterAt, b []byte, off int64) error {
	for len(b) > 0 {
		n := int(min(int64(len(b)), holeBlock-off%holeBlock)) // up to the end of a block
		skip := n == holeBlock && isZero(b[:n])
		for n < len(b) {
			next := b[n:min(len(b), n+holeBlock)]
			if (len(next) == holeBlock && isZero(next)) != skip {
				break
			}
			n += len(next)
		}
		if !skip {
			if _, err := to.WriteAt(b[:n], off); err != nil {
				return err
			}
		}
		b, off = b[n:], off+int64(n)
	}
	return nil
}

// isZero reports whether bytes are all zero.
func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
