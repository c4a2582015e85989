//go:build unix

package fakesagemaker

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"
)

// Session is one of Systems Manager.
type Session struct {
	ID, Target, Document string
	Parameters           map[string][]string
	Ended                bool
	token                string
}

// portSession is the document of a session to a port.
const portSession = "AWS-StartPortForwardingSession"

// Sessions are all that were begun, in order.
func (f *Fake) Sessions() (all []Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sessions {
		all = append(all, *s)
	}
	return all
}

// TurnOffDebug turns remote debugging of a job off, as UpdateTrainingJob does.
func (f *Fake) TurnOffDebug(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.jobs[name]
	j.RemoteDebugConfig.EnableRemoteDebug = false
	j.raw = []byte(strings.Replace(string(j.raw), `"EnableRemoteDebug":true`, `"EnableRemoteDebug":false`, 1))
}

// startSession begins a session to a container of a job that trains, where remote
// debugging is on and the role lets its agent call.
func (f *Fake) startSession(body []byte) (any, *Error) {
	in, e := read[struct {
		Target, DocumentName string
		Parameters           map[string][]string
	}](body)
	if e != nil {
		return nil, e
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	job, host, _ := strings.Cut(strings.TrimPrefix(in.Target, "sagemaker-training-job:"), "_algo-")
	n, err := strconv.Atoi(host)
	j := f.jobs[job]
	silent := f.Refuses(func(action string) bool { return strings.HasPrefix(action, "ssmmessages:") })
	switch {
	case !strings.HasPrefix(in.Target, "sagemaker-training-job:") || err != nil || j == nil || n < 1 || n > j.ResourceConfig.InstanceCount ||
		j.second != "Training" || j.RemoteDebugConfig == nil || !j.RemoteDebugConfig.EnableRemoteDebug || j.EnableNetworkIsolation || silent:
		return nil, &Error{400, "TargetNotConnected", in.Target + " is not connected."}
	case in.DocumentName != "" && in.DocumentName != portSession:
		return nil, &Error{400, "InvalidDocument", "Document with name " + in.DocumentName + " does not exist."}
	case in.DocumentName == portSession && (len(in.Parameters["portNumber"]) != 1 || len(in.Parameters["localPortNumber"]) != 1):
		return nil, &Error{400, "InvalidParameters", "portNumber and localPortNumber"}
	}
	// The plugin names a socket by it, below the directory for such of the whole machine.
	s := &Session{ID: "ann-" + strings.ToLower(rand.Text()[:17]), Target: in.Target, Document: in.DocumentName, Parameters: in.Parameters,
		token: fmt.Sprintf("token-%d", len(f.sessions)+1)}
	f.sessions = append(f.sessions, s)
	return map[string]string{"SessionId": s.ID, "TokenValue": s.token,
		"StreamUrl": strings.Replace(f.URL, "http://", "ws://", 1) + dataChannel + s.ID + "?role=publish_subscribe"}, nil
}

func (f *Fake) terminateSession(body []byte) (any, *Error) {
	in, e := read[struct{ SessionId string }](body)
	if e != nil {
		return nil, e
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.session(in.SessionId)
	if s == nil {
		return nil, &Error{400, "DoesNotExistException", "Session " + in.SessionId + " does not exist"}
	}
	s.Ended = true
	return map[string]string{"SessionId": s.ID}, nil
}

func (f *Fake) session(id string) *Session {
	for _, s := range f.sessions {
		if s.ID == id {
			return s
		}
	}
	return nil
}

// Trains reports whether the containers of a job run.
func (f *Fake) Trains(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	j := f.jobs[name]
	return j != nil && j.second == "Training"
}
