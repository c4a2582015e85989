package wire

// Files reads the files of metrics that a training writes. The request is a
// FilesRequest; FilesNews follow until the caller has enough.
const Files = "files"

// FilePieceMost bounds a piece: the state of a trainer comes as a whole.
const FilePieceMost = 32 << 20

// FilesRequest says where to look.
type FilesRequest struct {
	Dirs []string `cbor:"d"` // below the home directory; a link to one is followed where a slash is behind it
	// Mark is a file as old as the run: what was written before it is not the run's.
	Mark  string   `cbor:"m"`
	Known []FileAt `cbor:"k,omitempty"` // what the caller has already
	Bases bool     `cbor:"b,omitempty"` // tell what files held before the run
	Once  bool     `cbor:"o,omitempty"` // end when all that is there was told
}

// FileAt is how far a file was read. A file is known by its inode, so one that
// was renamed into place is another.
type FileAt struct {
	Inode uint64 `cbor:"i"`
	Next  int64  `cbor:"n"`           // the offset that comes next
	Sum   uint32 `cbor:"s,omitempty"` // of a table's header: with another one it is another table
}

// FilesNews is one of these.
type FilesNews struct {
	Base *FileBase  `cbor:"b,omitempty"`
	File *FilePiece `cbor:"f,omitempty"` // its bytes follow
	Data []byte     `cbor:"d,omitempty"` // at most ChunkMost
	Pass bool       `cbor:"p,omitempty"` // all files were looked at once
	Full bool       `cbor:"x,omitempty"` // as much was read as is allowed
}

// FileBase is what a file held before the run.
type FileBase struct {
	Inode uint64 `cbor:"i"`
	Size  int64  `cbor:"s"`
	End   []byte `cbor:"e"` // its last bytes, at most 64
}

// FilePiece is the next piece of a file: Length bytes from Next on, or fewer
// where the file became shorter meanwhile.
type FilePiece struct {
	FileAt
	Length int64  `cbor:"l"`
	Size   int64  `cbor:"z"` // of all of the file
	Path   string `cbor:"p"` // as Dirs begin it
}
