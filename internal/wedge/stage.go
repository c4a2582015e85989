//go:build unix

// Package wedge is an ssh server for tests that works like any other until it
// hangs: at a stage of ssh that the test names, for connections that are there
// and for those that come.
package wedge

// Stage is where the server hangs.
type Stage int

// The stages, in the order of a connection's life. At each of them the server
// has answered everything before, and answers nothing after.
const (
	None           Stage = iota
	Silent               // takes the connection and says nothing
	TrickledBanner       // says who it is, a byte a second
	EndlessBanner        // says lines that are not who it is, for ever
	KeyInit              // says who it is, and nothing of keys
	KeyReply             // offers algorithms, and no key
	NewKeys              // shows its key, and does not begin to use the new ones
	Service              // has new keys, and offers no login
	NoneAuth             // the first question of a login: none
	KeyQuery             // is asked whether a key would do
	Signature            // is shown a signature
	OpenChannel          // opens no session
	ExecReply            // does not say that a command was started
	SubsystemReply       // does not say that a subsystem was started
	Mute                 // starts commands that say nothing and never end
	NoReading            // starts commands that take no input, say nothing and never end
	Drip                 // starts commands that say a byte a minute
	Rekey                // begins to change keys in the middle, and stops
	Direct               // opens no tunnel
	HalfHello            // passes on half of the agent's hello
	Unanswered           // passes on the agent's hello, and nothing that it says then
	Untaken              // passes on the agent's hello, and nothing to the agent
	Stopped              // the agent is stopped after its hello: SIGSTOP
	Killed               // the agent is killed after its hello, each time
	Frozen               // reads and writes nothing more: SIGSTOP, or a dead link
)

// Stages are all of them, with their names.
var Stages = map[Stage]string{
	Silent: "silent", TrickledBanner: "trickled banner", EndlessBanner: "endless banner", KeyInit: "key init",
	KeyReply: "key reply", NewKeys: "new keys", Service: "service", NoneAuth: "none auth", KeyQuery: "key query",
	Signature: "signature", OpenChannel: "open channel", ExecReply: "exec reply",
	SubsystemReply: "subsystem reply", Mute: "mute command", NoReading: "no reading", Drip: "drip",
	Rekey: "rekey", Direct: "direct-tcpip", HalfHello: "half a hello", Unanswered: "unanswered", Untaken: "untaken",
	Stopped: "stopped agent", Killed: "killed agent", Frozen: "frozen",
}

// writes is after how many writes of the handshake a connection hangs: the
// version, the algorithms, the key, the change to the new keys. 0: it does not.
var writes = map[Stage]int{KeyInit: 1, KeyReply: 2, NewKeys: 3, Service: 4}
