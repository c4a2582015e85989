package ownimage

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecr/types"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
	"github.com/dlwb/dlwb/internal/pattern"
)

// callLimit bounds one question with its repetitions.
const callLimit = time.Minute

// repository is one of ECR.
type repository struct {
	api          *awsapi.API
	client       *ecr.Client
	region, name string
	address      string // host/name
	arn          string
}

// open finds a repository. None is made: who has it pays for what lies there.
func open(ctx context.Context, api *awsapi.API, region, name string) (*repository, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	r := &repository{api: api, client: ecr.NewFromConfig(api.Config(region)), region: region, name: name}
	out, err := r.client.DescribeRepositories(ctx, &ecr.DescribeRepositoriesInput{RepositoryNames: []string{name}})
	if err != nil {
		return nil, r.explain(err)
	}
	if len(out.Repositories) == 0 || aws.ToString(out.Repositories[0].RepositoryUri) == "" {
		return nil, r.absent()
	}
	r.address, r.arn = aws.ToString(out.Repositories[0].RepositoryUri), aws.ToString(out.Repositories[0].RepositoryArn)
	return r, nil
}

func (r *repository) absent() error {
	return &Error{Why: "ECR has no repository " + r.name + " in " + r.region,
		Next: "aws ecr create-repository --region " + r.region + " --repository-name " + r.name}
}

// find gives the digest of a tag; empty: no image has it.
func (r *repository) find(ctx context.Context, tag string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	out, err := r.client.DescribeImages(ctx, &ecr.DescribeImagesInput{RepositoryName: &r.name, ImageIds: []types.ImageIdentifier{{ImageTag: &tag}}})
	if code, _ := awsapi.CodeOf(err); code == "ImageNotFoundException" {
		return "", nil
	}
	if err != nil {
		return "", r.explain(err)
	}
	for _, i := range out.ImageDetails {
		if digest := aws.ToString(i.ImageDigest); digestForm.MatchString(digest) {
			return digest, nil
		}
	}
	return "", nil
}

// digestForm is a digest of a registry.
var digestForm = pattern.New(`^sha256:[0-9a-f]{64}$`)

// explain says what an error of a call means.
func (r *repository) explain(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if code, _ := awsapi.CodeOf(err); code == "RepositoryNotFoundException" {
		return r.absent()
	}
	return awsapi.Explain(err, awsapi.Call{Region: r.region, ID: r.name})
}

// token is the user and the password that ECR gives for the registries of a region, for
// twelve hours.
func (r *repository) token(ctx context.Context, region string) (user, password string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	client := r.client
	if region != r.region {
		client = ecr.NewFromConfig(r.api.Config(region))
	}
	out, err := client.GetAuthorizationToken(ctx, &ecr.GetAuthorizationTokenInput{})
	if err != nil {
		return "", "", r.explain(err)
	}
	for _, a := range out.AuthorizationData {
		text, err := base64.StdEncoding.DecodeString(aws.ToString(a.AuthorizationToken))
		if user, password, is := strings.Cut(string(text), ":"); err == nil && is && password != "" {
			return user, password, nil
		}
	}
	return "", "", fmt.Errorf("ECR's answer to GetAuthorizationToken in %s has no token", region)
}

// ecrHost is a registry of ECR in front of an image's name, with its region.
var ecrHost = pattern.New(`^([0-9]{12}\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?)/`)
