package sagemaker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
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
	switch code, _ := awsapi.CodeOf(err); {
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

// enter gives the door to where a job is, once the credentials are known to be of
// the account that made it: those of another see nothing, and that proves nothing.
func (p *Provider) enter(ctx context.Context, r ref) (*door, error) {
	d, err := p.doors.Open(ctx, r.Region)
	if err != nil {
		return nil, err
	}
	return d, d.belongs(ctx, r)
}

// belongs is an error unless the caller's account is known to be that of a job.
func (d *door) belongs(ctx context.Context, r ref) error {
	account, err := d.account(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("job %s: whether your credentials are of its account is not known: %w", r.Name, err)
	case r.Account == "":
		return &plainError{"in which account job " + r.Name + " is, is not on record", "aws sagemaker describe-training-job --region " + r.Region + " --training-job-name " + r.Name}
	case r.Account != account:
		return &plainError{fmt.Sprintf("job %s is in account %s, and your credentials are of %s", r.Name, r.Account, account),
			"AWS_PROFILE or aws configure: credentials of account " + r.Account}
	}
	return nil
}

// account is the number of the caller's account.
func (d *door) account(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	id, err := d.api.Identity(ctx)
	if err == nil && id.Account == "" {
		err = errors.New("AWS names no account")
	}
	if err != nil {
		return "", d.explain(err)
	}
	return id.Account, nil
}

// ownerOf is what the ledger has of a job or its code. Where the account is not in
// it, the job's ARN has it.
func ownerOf(e *cloud.Entry) (ref, error) {
	r, err := readRef(string(e.Detail))
	if err != nil || r.Account != "" {
		return r, err
	}
	if a, err := arn.Parse(e.ID); err == nil {
		r.Account = a.AccountID
	}
	return r, nil
}

// bucketOf is the bucket of a profile; empty: that of the official SDK.
func (d *door) bucketOf(ctx context.Context, bucket string) (string, error) {
	if bucket != "" {
		return strings.TrimPrefix(bucket, "s3://"), nil
	}
	account, err := d.account(ctx)
	return "sagemaker-" + d.region + "-" + account, err
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
	code, _ := awsapi.CodeOf(err)
	status := statusOf(err)
	switch {
	case code == "NoSuchKey":
		return &plainError{"S3 has no such object any more", "aws s3 ls --recursive s3://" + bucket + "/ shows what is there"}
	case code == "NoSuchBucket" || code == "NotFound" || code == "" && status == http.StatusNotFound: // HeadBucket's answer has no code
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
		if price := awsapi.PerHour(text); price > 0 {
			return cloud.Price{PerHour: price, Source: priceSource, At: time.Now()}
		}
	}
	return cloud.Price{}
}
