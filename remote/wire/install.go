package wire

// Install puts in place what other programs on the node call by name, and removes
// agents that nobody uses.
const Install = "install"

// InstallRequest asks for that.
type InstallRequest struct{}

// InstallAnswer says that it is done.
type InstallAnswer struct{}
