// Package wire is the bytes of AWS's protocols: EC2's query and XML, the JSON of
// the newer services, the form of ids, and the wildcards of filters.
package wire

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Set is a list of EC2's XML: <name><item>…</item></name>, there when empty too.
type Set[T any] struct {
	Items []T `xml:"item"`
}

// SetOf makes a list of items.
func SetOf[T any](items []T) Set[T] { return Set[T]{items} }

// JSON is a value as the services with JSON send it.
func JSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// Inner is the XML of what is in a value.
func Inner(v any) []byte {
	var b bytes.Buffer
	if err := xml.NewEncoder(&b).EncodeElement(v, xml.StartElement{Name: xml.Name{Local: "x"}}); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(bytes.TrimPrefix(b.Bytes(), []byte("<x>")), []byte("</x>"))
}

// EC2 is an answer of EC2.
func EC2(action string, out any) []byte {
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<%sResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>%s</requestId>%s</%[1]sResponse>`,
		action, UUID(), Inner(out))
}

// STS is an answer of STS.
func STS(action string, out any) []byte {
	return fmt.Appendf(nil, `<%sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult>%s</%[1]sResult>`+
		`<ResponseMetadata><RequestId>%s</RequestId></ResponseMetadata></%[1]sResponse>`, action, Inner(out), UUID())
}

// Failure is an error of EC2 or STS.
func Failure(service, code, message string) []byte {
	what := Inner(struct{ Code, Message string }{code, message})
	if service == "sts" {
		return fmt.Appendf(nil, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>%s</Error>`+
			`<RequestId>%s</RequestId></ErrorResponse>`, what, UUID())
	}
	return fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?>
<Response><Errors><Error>%s</Error></Errors><RequestID>%s</RequestID></Response>`, what, UUID())
}

// UUID is an id of a request.
func UUID() string {
	b := Random(16)
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// NewID is an id as AWS makes them: "i-0abc…", never the same again.
func NewID(prefix string) string { return fmt.Sprintf("%s-0%x", prefix, Random(8)) }

// Random are n random bytes.
func Random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

// FixedID is the same id each time.
func FixedID(prefix, of string) string {
	sum := sha256.Sum256([]byte(prefix + of))
	return fmt.Sprintf("%s-0%x", prefix, sum[:8])
}

// Time is how AWS writes a time.
func Time(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

var wellFormed = regexp.MustCompile(`^[a-z]+-([0-9a-f]{8}|[0-9a-f]{17})$`)

// WellFormedID reports whether an id can be one of its kind.
func WellFormedID(prefix, id string) bool {
	return strings.HasPrefix(id, prefix+"-") && wellFormed.MatchString(id)
}
