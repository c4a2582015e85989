package gitfiles

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Index is which files git tracks.
type Index struct {
	files   []string        // sorted
	modules map[string]bool // submodules: directories that are a repository of their own
}

// Has reports whether a file or link is tracked.
func (x *Index) Has(path string) bool {
	if x == nil {
		return false
	}
	_, found := slices.BinarySearch(x.files, path)
	return found
}

// Module reports whether a directory is a submodule.
func (x *Index) Module(dir string) bool { return x != nil && x.modules[dir] }

// Below reports whether anything below a directory is tracked, or is a submodule.
func (x *Index) Below(dir string) bool {
	if x == nil {
		return false
	}
	dir += "/"
	for module := range x.modules {
		if strings.HasPrefix(module, dir) {
			return true
		}
	}
	at, _ := slices.BinarySearch(x.files, dir)
	return at < len(x.files) && strings.HasPrefix(x.files[at], dir)
}

// The index is described in git's Documentation/gitformat-index.
const (
	signature = "DIRC"
	// statSize is how much of an entry stands before the name of its object: two times,
	// device, inode, mode, owner, group and size.
	statSize = 40
	modeAt   = 24
	// nameBits of an entry's flags tell the length of its name, if it fits.
	nameBits = 0xfff
	extended = 0x4000

	modeType   = 0o170000
	modeModule = 0o160000
	modeDir    = 0o040000 // of a sparse index: nothing of it is here
	// namesMost bounds what names take together: in version 4 a few bytes can make a
	// long one.
	namesMost = 512 << 20
)

var errIndex = errors.New("git's index can't be read")

func broken(why string, args ...any) error {
	return fmt.Errorf("%w: %w", errIndex, fmt.Errorf(why, args...))
}

// entry is one file of an index.
type entry struct {
	name string // empty: of a split index, in place of one of the shared part
	mode uint32
}

// reading is an index that is read.
type reading struct {
	below  string // what is kept has this in front; with a slash at its end, or empty
	size   int    // of an object's name in bytes
	shared func(name string) ([]byte, error)
	bytes  int // of names, so far
}

// all reads an index with the one that it shares entries with.
func (x *reading) all(text []byte) (*Index, error) {
	entries, link, err := x.parse(text)
	if err == nil && len(link) > 0 {
		entries, err = x.join(entries, link)
	}
	if err != nil {
		return nil, err
	}
	found := &Index{}
	for _, e := range entries {
		name, below := strings.CutPrefix(e.name, x.below)
		switch {
		case !below || name == "" || e.mode&modeType == modeDir:
		case e.mode&modeType == modeModule:
			if found.modules == nil {
				found.modules = map[string]bool{}
			}
			found.modules[name] = true
		default:
			found.files = append(found.files, name)
		}
	}
	slices.Sort(found.files) // those of a split one come from two lists
	found.files = slices.Compact(found.files)
	return found, nil
}

// join puts the entries of a split index to those of its shared part.
func (x *reading) join(own []entry, link []byte) ([]entry, error) {
	if len(link) < x.size {
		return nil, broken("its link is too short")
	}
	name, bitmaps := link[:x.size], link[x.size:]
	if !bytes.ContainsFunc(name, func(r rune) bool { return r != 0 }) {
		return own, nil // it is split from none
	}
	text, err := x.shared(hex.EncodeToString(name))
	if err != nil {
		return nil, broken("the part that it shares: %w", err)
	}
	entries, further, err := x.parse(text)
	if err != nil || len(further) > 0 {
		return nil, broken("the part that it shares is none: %v", err)
	}
	if len(bitmaps) > 0 {
		if bitmaps, err = eachBit(bitmaps, len(entries), func(i int) { entries[i].name = "" }); err == nil {
			_, err = eachBit(bitmaps, len(entries), func(int) {}) // those replaced keep their names
		}
		if err != nil {
			return nil, err
		}
	}
	return append(entries, own...), nil
}

// parse reads one file, and the extension that links it with a shared one.
func (x *reading) parse(text []byte) (entries []entry, link []byte, err error) {
	if len(text) < 12+x.size || string(text[:4]) != signature {
		return nil, nil, broken("it does not begin as one")
	}
	version, count := binary.BigEndian.Uint32(text[4:]), binary.BigEndian.Uint32(text[8:])
	if version < 2 || version > 4 {
		return nil, nil, broken("version %d is not known", version)
	}
	rest := text[12 : len(text)-x.size] // a checksum follows, or zeros
	last := ""
	for range count {
		var e entry
		if e, rest, err = x.entry(rest, version, last); err != nil {
			return nil, nil, err
		}
		last = e.name
		entries = append(entries, e)
	}
	for len(rest) > 0 {
		if len(rest) < 8 {
			return nil, nil, broken("it ends in the middle of an extension")
		}
		name, size := string(rest[:4]), int64(binary.BigEndian.Uint32(rest[4:]))
		if size > int64(len(rest)-8) {
			return nil, nil, broken("it ends in the middle of its extension %q", name)
		}
		switch {
		case name == "link":
			link = rest[8 : 8+size]
		case name != "sdir" && (name[0] < 'A' || name[0] > 'Z'): // what must be understood
			return nil, nil, broken("its extension %q is not known", name)
		}
		rest = rest[8+size:]
	}
	return entries, link, nil
}

// entry reads one entry, and gives what follows it.
func (x *reading) entry(b []byte, version uint32, last string) (e entry, rest []byte, err error) {
	head := statSize + x.size + 2
	if len(b) < head {
		return e, nil, broken("it ends in the middle of an entry")
	}
	e.mode = binary.BigEndian.Uint32(b[modeAt:])
	flags := binary.BigEndian.Uint16(b[head-2:])
	if flags&extended != 0 && version >= 3 {
		head += 2
	}
	if len(b) < head {
		return e, nil, broken("it ends in the middle of an entry")
	}
	at, kept := b[head:], ""
	if version == 4 {
		var cut uint64
		if cut, at, err = varint(at); err != nil || cut > uint64(len(last)) {
			return e, nil, broken("a name has less than what is cut off it")
		}
		kept = last[:len(last)-int(cut)]
	}
	end := bytes.IndexByte(at, 0)
	if end < 0 {
		return e, nil, broken("it ends in the middle of a name")
	}
	if version < 4 && int(flags&nameBits) != min(end, nameBits) {
		return e, nil, broken("a name has %d bytes, and is said to have %d", end, flags&nameBits)
	}
	if x.bytes += len(kept) + end; x.bytes > namesMost {
		return e, nil, broken("its names have more than %d bytes", namesMost)
	}
	e.name = kept + string(at[:end])
	if version == 4 {
		return e, at[end+1:], nil
	}
	whole := (head + end + 8) &^ 7 // with 1 to 8 zeros
	if len(b) < whole {
		return e, nil, broken("it ends in the middle of an entry")
	}
	return e, b[whole:], nil
}

// varint reads a number as git writes offsets: each further byte adds one more.
func varint(b []byte) (n uint64, rest []byte, err error) {
	for i, c := range b {
		if i > 0 {
			n++
		}
		if i > 4 {
			break
		}
		if n = n<<7 | uint64(c&0x7f); c&0x80 == 0 {
			return n, b[i+1:], nil
		}
	}
	return 0, nil, broken("a number does not end")
}

// eachBit calls a function for each bit that is set in a bitmap, as EWAH packs it, of
// which there are less than most, and gives what follows it.
func eachBit(b []byte, most int, set func(i int)) (rest []byte, err error) {
	if len(b) < 12 {
		return nil, broken("a bitmap of it is too short")
	}
	words := int64(binary.BigEndian.Uint32(b[4:]))
	if words*8 > int64(len(b)-12) {
		return nil, broken("a bitmap of it ends too soon")
	}
	list, rest := b[8:8+words*8], b[8+words*8+4:]
	at := 0 // the bit that comes
	for len(list) > 0 {
		marker := binary.BigEndian.Uint64(list)
		list = list[8:]
		run, literal := marker>>1&(1<<32-1), marker>>33
		if run > uint64(most)/64+1 || literal > uint64(len(list)/8) {
			return nil, broken("a bitmap of it has more than there are entries")
		}
		for range run * 64 {
			if marker&1 != 0 && at < most {
				set(at)
			}
			at++
		}
		for range literal {
			for word, i := binary.BigEndian.Uint64(list), 0; i < 64; i++ {
				if word>>i&1 != 0 && at+i < most {
					set(at + i)
				}
			}
			at, list = at+64, list[8:]
		}
		if at > most+128 {
			return nil, broken("a bitmap of it has more than there are entries")
		}
	}
	return rest, nil
}
