package sagemaker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricetypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/dlwb/dlwb/cloud"
)

// roleOf is the ARN of a role that is given by its name or ARN. Who may not ask for
// it builds it from the account.
func (d *door) roleOf(ctx context.Context, role string) (string, error) {
	if strings.HasPrefix(role, "arn:") {
		return role, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	out, err := d.iam.GetRole(ctx, &iam.GetRoleInput{RoleName: &role})
	switch code, _ := codeOf(err); {
	case err == nil:
		return aws.ToString(out.Role.Arn), nil
	case code == "NoSuchEntity":
		return "", &plainError{"there is no IAM role " + role, "aws iam list-roles shows those that are; docs/sagemaker.md says what the role needs"}
	}
	id, err := d.api.Identity(ctx)
	if err != nil {
		return "", d.explain(err)
	}
	return "arn:" + partitionOf(id.ARN) + ":iam::" + id.Account + ":role/" + role, nil
}

func partitionOf(text string) string {
	if a, err := arn.Parse(text); err == nil {
		return a.Partition
	}
	return "aws"
}

// bucketOf is the bucket of a profile; empty: that of the official SDK.
func (d *door) bucketOf(ctx context.Context, bucket string) (string, error) {
	if bucket != "" {
		return strings.TrimPrefix(bucket, "s3://"), nil
	}
	id, err := d.api.Identity(ctx)
	if err != nil {
		return "", d.explain(err)
	}
	return "sagemaker-" + d.region + "-" + id.Account, nil
}

// regionOfBucket is where a bucket is; an error says why that is not known.
func (d *door) regionOfBucket(ctx context.Context, bucket string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	out, err := d.bucket().HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &bucket})
	if err == nil {
		return aws.ToString(out.BucketRegion), nil
	}
	var reply *smithyhttp.ResponseError
	if errors.As(err, &reply) && reply.Response != nil {
		if region := reply.Response.Header.Get("x-amz-bucket-region"); region != "" && reply.HTTPStatusCode() != http.StatusNotFound {
			return region, nil
		}
	}
	return "", err
}

// explainS3 says what an error of S3 means.
func (d *door) explainS3(bucket string, err error) error {
	code, _ := codeOf(err)
	status := statusOf(err)
	switch {
	case code == "NoSuchBucket" || status == http.StatusNotFound:
		return &plainError{"there is no bucket " + bucket, fmt.Sprintf("aws s3 mb s3://%s --region %s, or another one in machines.bucket", bucket, d.region)}
	case code == "PermanentRedirect" || status == http.StatusMovedPermanently:
		return &plainError{"the bucket " + bucket + " is in another region than the job, " + d.region, "machines.bucket: one in " + d.region}
	case code == "AccessDenied" || status == http.StatusForbidden:
		return &plainError{"you may not use the bucket " + bucket, "another one in machines.bucket; the policy that dlwb needs is in docs/sagemaker.md"}
	}
	return d.explain(err)
}

// priceSource is what a price is said to be from.
const priceSource = "AWS Price List"

// priceLimit bounds the question for a price, which nothing waits for.
const priceLimit = 5 * time.Second

// price is what one machine costs for an hour of training, on demand; 0: not known.
func (d *door) price(ctx context.Context, instance string) cloud.Price {
	ctx, cancel := context.WithTimeout(ctx, priceLimit)
	defer cancel()
	match := func(field, value string) pricetypes.Filter {
		return pricetypes.Filter{Type: pricetypes.FilterTypeTermMatch, Field: aws.String(field), Value: aws.String(value)}
	}
	out, err := d.api.Pricing(d.region).GetProducts(ctx, &pricing.GetProductsInput{ServiceCode: aws.String("AmazonSageMaker"), Filters: []pricetypes.Filter{
		match("regionCode", d.region), match("instanceName", instance), match("component", "Training")}})
	if err != nil {
		return cloud.Price{}
	}
	for _, text := range out.PriceList {
		if price := perHour(text); price > 0 {
			return cloud.Price{PerHour: price, Source: priceSource, At: time.Now()}
		}
	}
	return cloud.Price{}
}

// perHour reads a price of the price list; 0: there is none.
func perHour(text string) float64 {
	var entry struct {
		Terms struct {
			OnDemand map[string]struct {
				Dimensions map[string]struct {
					Unit  string            `json:"unit"`
					Price map[string]string `json:"pricePerUnit"`
				} `json:"priceDimensions"`
			} `json:"OnDemand"`
		} `json:"terms"`
	}
	if json.Unmarshal([]byte(text), &entry) != nil {
		return 0
	}
	for _, term := range entry.Terms.OnDemand {
		for _, dimension := range term.Dimensions {
			price, err := strconv.ParseFloat(dimension.Price["USD"], 64)
			if err == nil && price > 0 && strings.HasPrefix(strings.ToLower(dimension.Unit), "h") {
				return price
			}
		}
	}
	return 0
}
