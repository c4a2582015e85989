package workbench

import (
	"bytes"
	"strconv"
	"strings"
)

// fileFrames takes apart what scripts/files.sh prints. It holds back no more
// than a line of a frame.
type fileFrames struct {
	sign []byte // "\nSIGN "
	buf  []byte
	left int // bytes of the present file that are still to come

	file func(h fileHead)
	data func(p []byte)
	base func(inode string, size int64, end string)
	pass func(more bool)
	full func()
}

// fileHead is the head of a piece of a file.
type fileHead struct {
	inode        string
	offset, size int64
	length       int
	sum, path    string
}

// longestFrameLine bounds a line of a frame; a path is at most 4096 bytes.
const longestFrameLine = 8 << 10

// Write takes the next bytes.
func (f *fileFrames) Write(p []byte) (int, error) {
	f.buf = append(f.buf, p...)
	for f.step() {
	}
	return len(p), nil
}

// step takes one part of what has gathered; false when more must come first.
func (f *fileFrames) step() bool {
	at := bytes.Index(f.buf, f.sign)
	if f.left > 0 && at != 0 {
		n := len(f.buf)
		if at > 0 {
			n = at // the file became shorter while it was read
		} else if keep := f.begun(); n-keep > 0 {
			n -= keep
		} else {
			return false
		}
		n = min(n, f.left)
		f.data(f.buf[:n])
		f.left -= n
		f.drop(n)
		return n > 0
	}
	if at < 0 {
		f.drop(len(f.buf) - f.begun())
		return false
	}
	end := bytes.IndexByte(f.buf[at+1:], '\n')
	if end < 0 {
		f.drop(at)
		if len(f.buf) > longestFrameLine {
			f.drop(1)
			return true
		}
		return false
	}
	line := string(f.buf[at+len(f.sign) : at+1+end])
	f.left = 0
	f.drop(at + 1 + end)
	if f.line(line) {
		f.drop(1) // the newline is the head's; elsewhere it begins the next frame
	}
	return true
}

// begun is how many bytes at the end may be the beginning of a sign.
func (f *fileFrames) begun() int {
	for n := min(len(f.sign)-1, len(f.buf)); n > 0; n-- {
		if bytes.HasPrefix(f.sign, f.buf[len(f.buf)-n:]) {
			return n
		}
	}
	return 0
}

func (f *fileFrames) drop(n int) { f.buf = append(f.buf[:0], f.buf[n:]...) }

// line takes the head of a frame; true when bytes of a file follow it.
func (f *fileFrames) line(line string) bool {
	words := strings.SplitN(line, " ", 7)
	number := func(i int) int64 {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil || n < 0 {
			return -1
		}
		return n
	}
	switch {
	case words[0] == "pass" && len(words) == 2:
		f.pass(words[1] == "1")
	case words[0] == "full":
		f.full()
	case words[0] == "base" && len(words) == 4 && number(1) >= 0 && number(2) >= 0:
		f.base(words[1], number(2), words[3])
	case words[0] == "file" && len(words) == 7:
		h := fileHead{inode: words[1], offset: number(2), length: int(number(3)), size: number(4), sum: words[5], path: words[6]}
		if number(1) < 0 || h.offset < 0 || h.length < 0 || h.length > largestPiece || h.size < 0 || number(5) < 0 {
			return false
		}
		f.file(h)
		f.left = h.length
		return true
	}
	return false
}

// largestPiece is the most that one frame may hold; see scripts/files.sh.
const largestPiece = 32 << 20
