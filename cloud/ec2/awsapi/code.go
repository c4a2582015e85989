package awsapi

import (
	"errors"

	"github.com/aws/smithy-go"
)

// CodeOf is AWS's own code of an error, and its words; empty where AWS has answered
// nothing.
func CodeOf(err error) (code, says string) {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode(), api.ErrorMessage()
	}
	return "", ""
}
