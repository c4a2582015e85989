package sqlite

import (
	"encoding/binary"
	"io"
)

// wal is a write-ahead log: pages that are newer than those of the file.
type wal struct {
	file   io.ReaderAt
	frames map[uint32]int64 // where the newest of each page stands
	pages  uint32           // of the database behind it
}

const (
	walHead   = 32
	frameHead = 24
)

// readWAL reads a log up to its last whole transaction. What is of an older log, or
// was not written to its end, does not have the sums that go on from the head.
func readWAL(file io.ReaderAt, page int) *wal {
	w := &wal{file: file, frames: map[uint32]int64{}}
	head := make([]byte, walHead)
	if _, err := file.ReadAt(head, 0); err != nil {
		return w
	}
	order := binary.ByteOrder(binary.LittleEndian)
	switch binary.BigEndian.Uint32(head) {
	case 0x377f0682:
	case 0x377f0683:
		order = binary.BigEndian
	default:
		return w
	}
	sum := sums{order: order}
	sum.add(head[:24])
	if int(binary.BigEndian.Uint32(head[8:])) != page || !sum.are(head[24:]) {
		return w
	}
	frame := make([]byte, frameHead+page)
	begun := map[uint32]int64{}
	for at := int64(walHead); ; at += int64(len(frame)) {
		if n, _ := file.ReadAt(frame, at); n < len(frame) {
			return w
		}
		sum.add(frame[:8])
		sum.add(frame[frameHead:])
		if string(frame[8:16]) != string(head[16:24]) || !sum.are(frame[16:]) {
			return w
		}
		begun[binary.BigEndian.Uint32(frame)] = at + frameHead
		if pages := binary.BigEndian.Uint32(frame[4:]); pages > 0 { // a transaction ends
			w.pages = pages
			for n, off := range begun {
				w.frames[n] = off
			}
			clear(begun)
		}
	}
}

// sums are those of a log from its head on.
type sums struct {
	order binary.ByteOrder
	a, b  uint32
}

func (s *sums) add(p []byte) {
	for ; len(p) >= 8; p = p[8:] {
		s.a += s.order.Uint32(p) + s.b
		s.b += s.order.Uint32(p[4:]) + s.a
	}
}

func (s *sums) are(p []byte) bool {
	return binary.BigEndian.Uint32(p) == s.a && binary.BigEndian.Uint32(p[4:]) == s.b
}
