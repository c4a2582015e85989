package awsapi

import (
	"cmp"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// objectLimit bounds one attempt to send or to get a part of an object: 8 MiB take
// minutes on a thin line.
const objectLimit = 10 * time.Minute

// S3 is the client for S3 in a region; empty: the user's own. Whoever has pointed
// S3 elsewhere (AWS_ENDPOINT_URL_S3) has buckets that are no names of hosts, and a
// server that may not know the checksums which AWS has added.
func (a *API) S3(region string) *s3.Client {
	return s3.NewFromConfig(a.cfg, func(o *s3.Options) {
		o.Region = cmp.Or(region, o.Region, "us-east-1")
		o.HTTPClient = &client{&http.Client{Transport: a.web.Transport, Timeout: objectLimit}}
		if o.BaseEndpoint != nil {
			o.UsePathStyle = true
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
	})
}
