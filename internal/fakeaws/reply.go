package fakeaws

import (
	"net/http"
	"strconv"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// listing is what most lists of EC2 end with.
type listing struct {
	NextToken string `xml:"nextToken,omitempty"`
}

// done is the answer of calls that have nothing to say.
type done struct {
	Return bool `xml:"return"`
}

// reply sends the answer, as far as the fault lets it.
func (s *Server) reply(w http.ResponseWriter, q *request, out any, err error, do Effect) {
	status, kind, body := http.StatusOK, "text/xml;charset=UTF-8", []byte(nil)
	if q.json {
		kind = "application/x-amz-json-1.1"
	}
	f, failed := err.(*failure)
	if failed {
		status = f.Status
	}
	switch {
	case q.json && failed:
		w.Header().Set("X-Amzn-ErrorType", f.Code)
		body = wire.JSON(map[string]string{"__type": f.Code, "message": f.Message})
	case q.json:
		body = wire.JSON(out)
	case failed:
		body = wire.Failure(q.call.Service, f.Code, f.Message)
	case q.call.Service == "sts":
		body = wire.STS(q.call.Action, out)
	default:
		body = wire.EC2(q.call.Action, out)
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	switch do {
	case LoseReply:
		cut(w)
		return
	case Truncate:
		w.WriteHeader(status)
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		cut(w)
		return
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
	_ = http.NewResponseController(w).Flush()
}

// cut ends the connection without another byte.
func cut(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		_ = conn.Close()
	}
}
