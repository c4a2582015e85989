package remote

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Large files are cut where their content says so, as in rsync's kin: after an
// insertion the cuts behind it are where they were. The sizes are a compromise:
// a change costs about two chunks, a gigabyte has a list of 60 KB, and of most
// bytes nobody needs to look whether they make a cut.
const (
	chunkLeast = 512 << 10
	chunkLimit = 2 << 20
	// chunkMask makes a cut likely about every 256 KB beyond the least size.
	chunkMask = (1<<18 - 1) << 40
	// chunksMost bounds the list that a node may send: 8 TB have so many.
	chunksMost = 64 << 20
)

// gear gives each byte a random number. It must never change: lists lie on nodes.
var gear = func() (table [256]uint64) {
	r := rand.New(rand.NewPCG(0x646c7762, 0x73796e63))
	for i := range table {
		table[i] = r.Uint64()
	}
	return table
}()

// chunk is a piece of a file.
type chunk struct {
	size int64
	sum  [16]byte // of SHA-256; the whole file's is checked as well
}

// chunker cuts what is written to it.
type chunker struct {
	chunks []chunk
	sum    hash.Hash // of the present chunk
	have   int       // how much of it there is
	roll   uint64
}

func (c *chunker) Write(p []byte) (int, error) {
	if c.sum == nil {
		c.sum = sha256.New()
	}
	for rest := p; len(rest) > 0; {
		n, cut := c.scan(rest)
		_, _ = c.sum.Write(rest[:n]) // a hash takes all
		c.have += n
		rest = rest[n:]
		if cut {
			c.cut()
		}
	}
	return len(p), nil
}

// scan tells how much of p belongs to the present chunk, and whether it ends there.
func (c *chunker) scan(p []byte) (n int, cut bool) {
	have := c.have
	skip := min(len(p), max(0, chunkLeast-64-have)) // what is older than 64 bytes is rolled out
	p2 := p[skip:min(len(p), chunkLimit-have)]
	roll := c.roll
	for i, b := range p2 {
		roll = roll<<1 + gear[b]
		if roll&chunkMask == 0 && have+skip+i+1 >= chunkLeast {
			c.roll = roll
			return skip + i + 1, true
		}
	}
	c.roll = roll
	n = skip + len(p2)
	return n, have+n == chunkLimit
}

func (c *chunker) cut() {
	if c.have == 0 {
		return
	}
	c.chunks = append(c.chunks, chunk{int64(c.have), [16]byte(c.sum.Sum(nil)[:16])})
	c.sum.Reset()
	c.have, c.roll = 0, 0
}

// list ends the file and gives its chunks.
func (c *chunker) list() []chunk {
	c.cut()
	return c.chunks
}

// chunkText is a list as it lies on the node, a line for each chunk.
func chunkText(chunks []chunk) string {
	var b strings.Builder
	for _, c := range chunks {
		fmt.Fprintf(&b, "%d %x\n", c.size, c.sum)
	}
	return b.String()
}

// parseChunks reads what a node has kept. It is only ever used for what is
// checked afterwards, so that a wrong one costs time and nothing else.
func parseChunks(text string) ([]chunk, error) {
	var chunks []chunk
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		size, sum, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseInt(size, 10, 64)
		raw, err2 := hex.DecodeString(sum)
		if err != nil || err2 != nil || n <= 0 || n > chunkLimit || len(raw) != 16 {
			return nil, fmt.Errorf("the node's list of chunks has the line %.60q", lines.Text())
		}
		chunks = append(chunks, chunk{n, [16]byte(raw)})
	}
	return chunks, lines.Err()
}

// span is a part of a file: of the old one on the node, or of the new one here.
type span struct {
	old      bool
	off, len int64
}

// spansMost bounds how many pieces a file is put together of: each costs two
// processes there, and all of them stand in one command line.
const spansMost = 1000

// spans says how the new file is made of the old one and of what is sent.
func spans(old, now []chunk) []span {
	at := map[[16]byte]int64{}
	sizes := map[[16]byte]int64{}
	var off int64
	for _, c := range old {
		if _, known := at[c.sum]; !known {
			at[c.sum], sizes[c.sum] = off, c.size
		}
		off += c.size
	}
	var list []span
	off = 0
	for _, c := range now {
		s := span{off: off, len: c.size}
		if from, known := at[c.sum]; known && sizes[c.sum] == c.size {
			s.old, s.off = true, from
		}
		if n := len(list) - 1; n >= 0 && list[n].old == s.old && list[n].off+list[n].len == s.off {
			list[n].len += s.len
		} else {
			list = append(list, s)
		}
		off += c.size
	}
	if len(list) > spansMost {
		return []span{{off: 0, len: off}}
	}
	return list
}

// literal is how much of a file must be sent.
func literal(list []span) (n int64) {
	for _, s := range list {
		if !s.old {
			n += s.len
		}
	}
	return n
}

// literals reads what must be sent of a file, from some byte of that on.
func literals(f io.ReaderAt, list []span, from int64) io.Reader {
	var parts []io.Reader
	for _, s := range list {
		if s.old {
			continue
		}
		skip := min(from, s.len)
		from -= skip
		parts = append(parts, io.NewSectionReader(f, s.off+skip, s.len-skip))
	}
	return io.MultiReader(parts...)
}

// assembly is the spans as large.sh reads them.
func assembly(list []span) string {
	var b strings.Builder
	for _, s := range list {
		word := "new"
		if s.old {
			word = "old"
		}
		fmt.Fprintf(&b, "%s %d %d\n", word, s.off, s.len)
	}
	return b.String()
}
