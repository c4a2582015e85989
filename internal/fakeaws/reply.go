package fakeaws

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"strconv"
)

// set is a list of EC2's XML: <name><item>…</item></name>, there when empty too.
type set[T any] struct {
	Items []T `xml:"item"`
}

func setOf[T any](items []T) set[T] { return set[T]{items} }

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
		body = asJSON(map[string]string{"__type": f.Code, "message": f.Message})
	case q.json:
		body = asJSON(out)
	case failed:
		body = xmlFailure(q.call.Service, f)
	case q.call.Service == "sts":
		body = stsReply(q.call.Action, out)
	default:
		body = ec2Reply(q.call.Action, out)
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

func asJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// inner is the XML of what is in a value.
func inner(v any) []byte {
	var b bytes.Buffer
	if err := xml.NewEncoder(&b).EncodeElement(v, xml.StartElement{Name: xml.Name{Local: "x"}}); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(bytes.TrimPrefix(b.Bytes(), []byte("<x>")), []byte("</x>"))
}

func ec2Reply(action string, out any) []byte {
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<%sResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>%s</requestId>%s</%[1]sResponse>`,
		action, uuid(), inner(out))
}

func stsReply(action string, out any) []byte {
	return fmt.Appendf(nil, `<%sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult>%s</%[1]sResult>`+
		`<ResponseMetadata><RequestId>%s</RequestId></ResponseMetadata></%[1]sResponse>`, action, inner(out), uuid())
}

func xmlFailure(service string, f *failure) []byte {
	what := inner(struct{ Code, Message string }{f.Code, f.Message})
	if service == "sts" {
		return fmt.Appendf(nil, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>%s</Error>`+
			`<RequestId>%s</RequestId></ErrorResponse>`, what, uuid())
	}
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<Response><Errors><Error>%s</Error></Errors><RequestID>%s</RequestID></Response>`, what, uuid())
}

func uuid() string {
	b := randomBytes(16)
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// newID is an id as AWS makes them: "i-0abc…", never the same again.
func newID(prefix string) string { return fmt.Sprintf("%s-0%x", prefix, randomBytes(8)) }

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}
