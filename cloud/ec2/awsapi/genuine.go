package awsapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// foreignError is that something answered a call with success, and in no form that
// the service has: a proxy's page, a login page of the network. The SDK reads such an
// answer as one that lists nothing, which would prove that nothing is left.
type foreignError struct {
	action string
	status int
	form   string // "a web page"
}

func (e *foreignError) Error() string {
	return fmt.Sprintf("something that is not AWS answered %s with HTTP %d and %s", e.action, e.status, e.form)
}

// NotAWS reports whether the answer to a call came from something that does not speak
// for AWS, and says the same when it is asked again at once.
func NotAWS(err error) bool {
	var foreign *foreignError
	if errors.As(err, &foreign) {
		return true
	}
	var reply *smithyhttp.ResponseError
	if !errors.As(err, &reply) || reply.Response == nil {
		return false
	}
	if ask := reply.Response.Request; ask != nil && ask.Method == http.MethodHead {
		return false // AWS has no words there either
	}
	switch status := reply.HTTPStatusCode(); {
	case status == http.StatusNetworkAuthenticationRequired:
	case status < 400 || status >= 500, status == http.StatusRequestTimeout, status == http.StatusTooManyRequests:
		return false
	}
	var api smithy.APIError
	return !errors.As(err, &api) || api.ErrorCode() == noCode
}

// genuine refuses answers of success that are none of the service's. It stands where
// an answer comes in first.
type genuine struct{}

// ID implements middleware.DeserializeMiddleware.
func (genuine) ID() string { return "dlwb:genuine" }

// HandleDeserialize implements middleware.DeserializeMiddleware.
func (genuine) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (
	out middleware.DeserializeOutput, metadata middleware.Metadata, err error) {
	out, metadata, err = next.HandleDeserialize(ctx, in)
	reply, is := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !is || reply.StatusCode < 200 || reply.StatusCode >= 300 {
		return out, metadata, err
	}
	action := awsmiddleware.GetOperationName(ctx)
	asked := ""
	if ask, is := in.Request.(*smithyhttp.Request); is {
		asked = ask.Header.Get("Content-Type")
	}
	form, key := strange(awsmiddleware.GetServiceID(ctx), action, asked, reply)
	if form != "" {
		_ = reply.Body.Close()
		err = &foreignError{action, reply.StatusCode, form}
	}
	if t, is := middleware.GetStackValue(ctx, lastTryKey{}).(*lastTry); is {
		t.action, t.key = action, key
	}
	return out, metadata, err
}

// headBytes is how far into an answer its first element is looked for.
const headBytes = 4 << 10

// strange is what an answer is, if it can't be the service's; empty if it can. Services
// answer in JSON who asks in it; of such an answer key is the first key. asked is the
// type of the question.
func strange(service, action, asked string, reply *smithyhttp.Response) (form, key string) {
	ending, byJSON, changes := "Response", strings.Contains(asked, "json"), Call{Action: action}.changes()
	if service == "S3" {
		ending = "Result"
	}
	switch {
	case service == "S3" && !changes && !strings.HasPrefix(action, "List"):
		return "", "" // the bytes of an object, which may be anything, or none
	case strings.Contains(asked, "cbor"):
		return "", ""
	}
	body := bufio.NewReaderSize(reply.Body, headBytes)
	reply.Body = struct {
		io.Reader
		io.Closer
	}{body, reply.Body}
	head, err := body.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", "" // it was cut off: whoever reads it will see that
	}
	head = bytes.TrimLeft(head, "\ufeff \t\r\n")
	switch { // whatever its header calls it: some stand-ins for AWS have but one type
	case byJSON && bytes.HasPrefix(head, []byte("{")):
		return "", firstKey(head)
	case len(head) == 0 && changes:
		return "", "" // what a change has made is looked for
	case service == "S3" && changes && firstElement(head) == "Error":
		return "", "" // a copy that failed on its way: the SDK knows that
	case !byJSON && answers(firstElement(head), ending):
		return "", ""
	case strings.HasPrefix(reply.Header.Get("Content-Type"), "text/html"):
		return "a web page", ""
	case len(head) == 0:
		return "nothing", ""
	case head[0] == '<':
		return "a page of its own", ""
	}
	return "a text of its own", ""
}

// answers reports whether an element of such a name is an answer: "Response" by itself
// and "ErrorResponse" are how AWS refuses, which it does not do with success.
func answers(element, ending string) bool {
	return strings.HasSuffix(element, ending) && element != "Response" && element != "ErrorResponse"
}

// firstKey is the first key of an object in JSON; empty where there is none.
func firstKey(head []byte) string {
	in := json.NewDecoder(bytes.NewReader(head))
	_, _ = in.Token() // the brace
	token, _ := in.Token()
	key, _ := token.(string)
	return key
}

// nothingIn reports whether the SDK has understood nothing of an answer that has keys:
// it leaves out those that it does not know.
func nothingIn(result any) bool {
	v := reflect.Indirect(reflect.ValueOf(result))
	if v.Kind() != reflect.Struct {
		return false
	}
	fields := 0
	for i := range v.NumField() {
		if f := v.Type().Field(i); !f.IsExported() || f.Name == "ResultMetadata" {
			continue
		}
		if fields++; !v.Field(i).IsZero() {
			return false
		}
	}
	return fields > 0
}

// firstElement is the name of the first element of XML; empty where there is none.
func firstElement(head []byte) string {
	for in := xml.NewDecoder(bytes.NewReader(head)); ; {
		token, err := in.Token()
		if err != nil {
			return ""
		}
		if element, is := token.(xml.StartElement); is {
			return element.Name.Local
		}
	}
}

// lastTry remembers how the last try of a call ended. When the time of the whole call
// is over while it waits for the next one, the SDK says that alone, and not what
// stands in the way.
type lastTry struct {
	err         error
	action, key string // the first key of its answer in JSON
}

type lastTryKey struct{}

// eachTry stands within the repetitions.
func eachTry(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleFinalize(ctx, in)
	t, is := middleware.GetStackValue(ctx, lastTryKey{}).(*lastTry)
	switch {
	case !is:
	case ctx.Err() == nil:
		t.err = err
	case (Call{Action: awsmiddleware.GetOperationName(ctx)}).changes():
		t.err = nil // what this try has made nobody knows: how the one before it ended says nothing of it
	}
	return out, metadata, err
}

// allTries stands around the repetitions.
func allTries(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	t := &lastTry{}
	out, metadata, err := next.HandleInitialize(middleware.WithStackValue(ctx, lastTryKey{}, t), in)
	if err != nil && t.err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = t.err
	}
	if err == nil && t.key != "" && nothingIn(out.Result) {
		err = &foreignError{t.action, http.StatusOK, "JSON of its own"}
	}
	return out, metadata, err
}

// distrust puts both into the way of a call. What signs an address only sends nothing.
func distrust(stack *middleware.Stack) error {
	if _, tries := stack.Finalize.Get("Retry"); !tries {
		return nil
	}
	return errors.Join(
		stack.Deserialize.Add(genuine{}, middleware.After),
		stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("dlwb:eachTry", eachTry), "Retry", middleware.After),
		stack.Initialize.Add(middleware.InitializeMiddlewareFunc("dlwb:allTries", allTries), middleware.Before))
}
