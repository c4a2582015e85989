package wire

// Results come from a node by List and Fetch; checkpoints go back by Put, which
// gathers them beside their place, and Aside, which moves things to where they
// belong and what is in their way to another directory.
const (
	List  = "list"  // ListRequest; the agent answers with ListPages
	Fetch = "fetch" // FetchRequest; the caller sends FetchPages, the agent Packs
	Put   = "put"   // PutRequest; the caller sends Packs
	Aside = "aside" // AsideRequest, AsideAnswer
)

const (
	// PackMost bounds the bytes of files in one Pack.
	PackMost = 128 << 10
	// PageMost bounds the entries of a page, and of a Pack.
	PageMost = 1024
	// NameMost bounds a path: PATH_MAX of common systems, with room.
	NameMost = 8 << 10
	// PageBytes is how long the names of a page may be together.
	PageBytes = 256 << 10
)

// ListRequest asks what is below some paths of a directory, which is absolute or
// below the home. A path that is a link to a directory is followed.
type ListRequest struct {
	Dir   string   `cbor:"d"`
	Paths []string `cbor:"p"`
}

// ListPage is a part of the answer.
type ListPage struct {
	Clock   int64    `cbor:"c,omitempty"` // the node's, in seconds; in the first page
	Missing []int    `cbor:"m,omitempty"` // the asked paths that are not there, by number
	Things  []Thing  `cbor:"t,omitempty"`
	Unread  []Unread `cbor:"u,omitempty"`
}

// Unread is what could not be looked at.
type Unread struct {
	Name string `cbor:"n"`
	Why  string `cbor:"w"`
}

// Time is in seconds and nanoseconds since 1970.
type Time struct {
	_    struct{} `cbor:",toarray"`
	Sec  int64
	Nano uint32
}

// Thing is the state of one thing of a file system.
type Thing struct {
	_              struct{} `cbor:",toarray"`
	Name           string
	Mode           uint32 // st_mode
	Size           int64
	Inode          uint64
	MTime, Changed Time
}

// FetchRequest asks for files and links of a directory.
type FetchRequest struct {
	Dir string `cbor:"d"`
}

// FetchPage names some of them. They come in the order in which they are named.
type FetchPage struct {
	Wants []Want `cbor:"w"`
}

// Want is one file or link.
type Want struct {
	_    struct{} `cbor:",toarray"`
	Name string
	From int64 // the first byte to be sent; those before it count for the checksum
	Link bool
}

// Pack is a part of a stream of files. The bytes of all its parts follow it as
// they are, one after the other.
type Pack struct {
	Parts []Part `cbor:"p"`
	Len   int    `cbor:"l,omitempty"` // of what follows
	Full  int    `cbor:"f,omitempty"` // its length before it was compressed by zstd; 0: it is not
}

// Part is some of one file; the next part belongs to the same one until its End
// has come.
type Part struct {
	_    struct{} `cbor:",toarray"`
	N    int
	Head *Head // in a Put
	End  *End
}

// End is what is known of a file when all of it was sent.
type End struct {
	Sum     []byte `cbor:"s,omitempty"` // SHA-256 of all that was read, from byte 0
	MTime   int64  `cbor:"m,omitempty"` // in seconds
	Changed bool   `cbor:"c,omitempty"` // it was written to while it was read
	Link    string `cbor:"l,omitempty"` // a link's target
	Why     string `cbor:"w,omitempty"` // why it was not sent
}

// PutRequest gathers what the caller sends in Packs in Stage, a directory that is
// made in Dir: files that are whole below StageWhole, and the one under way as
// StagePart with the number of the try. A try whose connection was lost may still
// be at work there: no other one writes to its file.
type PutRequest struct {
	Dir   string `cbor:"d"`
	Stage string `cbor:"s"`
	Try   int    `cbor:"t"`
}

// Where things are in a stage.
const (
	StageWhole = "whole/"
	StagePart  = "part-"
)

// Head tells what comes in a Put: a file, a directory or a link.
type Head struct {
	_     struct{} `cbor:",toarray"`
	Name  string
	Mode  uint32 // the permissions of a file or directory
	MTime Time
	From  int64 // how much of the file is there
	Of    int   // the try that brought that
	Dir   bool
	Link  string // a link's target
}

// AsideRequest moves the named things of Dir to the directory Aside, under names
// that nothing has there; and with a Stage what is in that to Dir, and what is in
// its way likewise. What is not there is no error.
type AsideRequest struct {
	Dir   string   `cbor:"d"`
	Aside string   `cbor:"a"`
	Names []string `cbor:"n,omitempty"`
	Stage string   `cbor:"s,omitempty"`
	Drop  bool     `cbor:"x,omitempty"` // the stage is removed instead
}

// AsideAnswer says that it is done.
type AsideAnswer struct{}
