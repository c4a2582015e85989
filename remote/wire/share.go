package wire

// Share has a node send what is in a directory to others that Take it.
const (
	// Give's request is a ShareGive, its answer a ShareGiven.
	Give = "give"
	// Take's request is a ShareTake. The agent says by a ShareReady that it
	// listens; the caller sends what the sender has given as a ShareGiven, and
	// the answer is a ShareReady when all is in its place.
	Take = "take"
)

// ShareGive asks for a directory to be sent, under a name, to peers.
type ShareGive struct {
	Dir   string   `cbor:"d"` // below the home
	Name  string   `cbor:"n"`
	Peers []string `cbor:"p"`
}

// ShareGiven is the digest of all that was sent, as SyncDigest makes it.
type ShareGiven struct {
	Digest []byte `cbor:"d"`
}

// ShareTake asks for a directory to be taken, of at most so many bytes.
type ShareTake struct {
	Dir  string `cbor:"d"` // below the home; whatever is there goes
	Name string `cbor:"n"`
	Most int64  `cbor:"m"`
}

// ShareReady says that something is done.
type ShareReady struct{}
