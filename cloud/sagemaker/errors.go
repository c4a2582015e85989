package sagemaker

import (
	"context"
	"errors"
	"net/http"
	"strings"

	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// plainError is what is wrong, with what to do about it.
type plainError struct{ text, next string }

func (e *plainError) Error() string { return e.text }

// Advice says what to do.
func (e *plainError) Advice() string { return e.next }

// absent reports whether a job is not there: SageMaker calls a name that it does
// not know a faulty request, and only its words tell that from others.
func absent(err error) bool {
	code, says := awsapi.CodeOf(err)
	low := strings.ToLower(says)
	unknown := strings.Contains(low, "not found") || strings.Contains(low, "could not find") || strings.Contains(low, "does not exist")
	return code == "ResourceNotFound" || code == "ResourceNotFoundException" || code == "ValidationException" && unknown
}

// taken reports whether a name is in use.
func taken(err error) bool {
	code, _ := awsapi.CodeOf(err)
	return code == "ResourceInUse"
}

// explain says what an error of a call means.
func (d *door) explain(err error) error {
	if err == nil || ended(err) {
		return err
	}
	code, says := awsapi.CodeOf(err)
	switch {
	case code == "ResourceLimitExceeded":
		return &plainError{"SageMaker's quota is reached: " + says, d.quotaNext()}
	case code == "ValidationException":
		return &plainError{"SageMaker refuses the job: " + says, "look at the keys of machines that it names"}
	case errors.Is(err, context.DeadlineExceeded):
		return &awsapi.Problem{Kind: awsapi.Unknown, Cause: "AWS does not answer in " + d.region, Next: "is the network there, is a proxy needed (HTTPS_PROXY)?", Err: err}
	}
	return awsapi.Explain(err, awsapi.Call{Region: d.region})
}

func (d *door) quotaNext() string {
	return "https://" + d.region + ".console.aws.amazon.com/servicequotas/home/services/sagemaker/quotas asks for more"
}

// certain reports whether an error of a call that was sent once says that it was not
// carried out. A fault of the service says nothing of the kind, whatever its code.
func certain(err error) bool {
	code, _ := awsapi.CodeOf(err)
	status := statusOf(err)
	return code != "" && code != "InternalFailure" && code != "ServiceUnavailable" &&
		status >= http.StatusBadRequest && status < http.StatusInternalServerError && status != http.StatusRequestTimeout
}

// throttled reports whether a call was not looked at because there are too many.
func throttled(err error) bool {
	code, _ := awsapi.CodeOf(err)
	return certain(err) && (code == "ThrottlingException" || code == "Throttling" || code == "TooManyRequestsException")
}

// statusOf is the status of the reply that an error came with; 0: there was none.
func statusOf(err error) int {
	var reply *smithyhttp.ResponseError
	if errors.As(err, &reply) && reply.Response != nil {
		return reply.HTTPStatusCode()
	}
	return 0
}

// crowded reports whether the same call is taken later.
func crowded(err error) bool {
	code, _ := awsapi.CodeOf(err)
	return code == "ResourceLimitExceeded" || throttled(err)
}

// permanent reports whether asking again can't help.
func permanent(err error) bool {
	var p *awsapi.Problem
	return errors.As(err, &p) && (p.Kind == awsapi.NoPermission || p.Kind == awsapi.NoCredentials)
}
