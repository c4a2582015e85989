package wire

// Follow hands over a file from an offset on, as it grows. The request is a
// FollowRequest; FollowNews follow until the caller has enough.
const Follow = "follow"

// Truncated is the kind of fault for a file that became shorter than what was
// read of it, or in whose place another one is.
const Truncated = "truncated"

// SegmentMost bounds the length of a log's segments.
const SegmentMost = 1 << 40

// FollowRequest says what to follow.
type FollowRequest struct {
	Path string `cbor:"p"` // below the home directory, or absolute
	From int64  `cbor:"f"`
	// Segment is the length of a log's segments; 0: the file is one.
	Segment int64 `cbor:"s,omitempty"`
}

// FollowNews is bytes that come next, or that some do not.
type FollowNews struct {
	Data []byte `cbor:"d,omitempty"` // at most ChunkMost
	// Dropped is the next offset, where what is before it is not there any more.
	Dropped int64 `cbor:"x,omitempty"`
}
