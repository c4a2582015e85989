package wire

// Facts tells what a node is. It has one answer, NodeFacts.
const Facts = "facts"

// FactsRequest asks for that.
type FactsRequest struct{}

// NodeFacts is what a node is; what it can't tell is empty.
type NodeFacts struct {
	Host   string   `cbor:"h"`
	Kernel string   `cbor:"k"` // with its version
	System string   `cbor:"s"` // of the distribution
	Cores  int      `cbor:"c"`
	Memory int64    `cbor:"m"` // bytes
	GPUs   []string `cbor:"g"` // their names
	Driver string   `cbor:"d"`
	CUDA   string   `cbor:"u"` // the newest that the driver knows
	Image  string   `cbor:"i"` // of an instance of EC2
}
