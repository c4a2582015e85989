package wire

// DialPort connects to an address as the node sees it. The request is a DialRequest,
// the answer a Dialed; then come the connection's bytes, both ways.
const DialPort = "dial"

// DialRequest says where to.
type DialRequest struct {
	Network string `cbor:"n"` // "tcp", "tcp4" or "tcp6"
	Addr    string `cbor:"a"` // a host, by its name or address, and a port
}

// Dialed says that a connection is there.
type Dialed struct{}

// ListenPort listens on a port of the node's loopback until the call is given up.
// The request is a ListenRequest, the answer a Listening, and then a Connected
// comes for each connection, to be fetched by FetchPort.
const ListenPort = "listen"

// ListenRequest says which port; 0: any free one.
type ListenRequest struct {
	Port int `cbor:"p"`
}

// Listening says which port it is.
type Listening struct {
	Port int `cbor:"p"`
}

// Connected tells of a connection to a port that is listened on.
type Connected struct {
	Number uint64 `cbor:"n"`
}

// FetchPort takes over a connection. The request is its Connected, the answer a
// Dialed; then come the connection's bytes, both ways.
const FetchPort = "fetch port"
