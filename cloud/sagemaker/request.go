package sagemaker

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker"
	"github.com/aws/aws-sdk-go-v2/service/sagemaker/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/about"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"
)

// usualDisk is what the official SDK asks for, in GB.
const usualDisk = 30

// settings are what is found out before a job is made.
type settings struct {
	life  cloud.Life
	role  string // its ARN
	image string
	limit time.Duration
	// names of the environment, with estimators: else they go with the code.
	env map[string]string
}

// longest is what SageMaker takes as the time of a job.
const longest = 28 * 24 * time.Hour

// requestOf is the call that makes a job. It is pure.
func requestOf(j cloud.Job, r ref, s settings) (*sagemaker.CreateTrainingJobInput, error) {
	m := about.Own[options.Machines](j.Spec.Own)
	in := &sagemaker.CreateTrainingJobInput{
		TrainingJobName: &r.Name, RoleArn: &s.role,
		AlgorithmSpecification: &types.AlgorithmSpecification{TrainingImage: &s.image, TrainingInputMode: modeOf(m.InputMode),
			MetricDefinitions: metricsOf(j.Spec.Metrics)},
		OutputDataConfig:  &types.OutputDataConfig{S3OutputPath: aws.String(r.Output), KmsKeyId: optional(m.KMSKey)},
		ResourceConfig:    resourcesOf(j, m),
		StoppingCondition: &types.StoppingCondition{MaxRuntimeInSeconds: seconds(s.limit)},
		HyperParameters:   maps.Clone(m.Hyper), Environment: s.env, Tags: tagsFor(s.life, j.Run, m.Tags),
	}
	channels, err := channelsOf(m)
	if err != nil {
		return nil, err
	}
	in.InputDataConfig = channels
	if m.Estimator != "" {
		if in.HyperParameters, err = hyperOf(j, r, "s3://"+r.Bucket+"/"+r.sourceKey()); err != nil {
			return nil, err
		}
		in.AlgorithmSpecification.EnableSageMakerMetricsTimeSeries = aws.Bool(true)
	} else {
		in.AlgorithmSpecification.ContainerEntrypoint = []string{"/bin/sh", "-c", entrypoint}
		in.InputDataConfig = append(in.InputDataConfig, ownChannel(r))
	}
	if m.Checkpoints != "" && j.Trial { // what another one has saved is none of its own
		m.Checkpoints = strings.TrimRight(m.Checkpoints, "/") + "/" + r.Name
	}
	around(in, m)
	if j.Spec.Spot {
		in.EnableManagedSpotTraining = aws.Bool(true)
		in.StoppingCondition.MaxWaitTimeInSeconds = seconds(waitOf(m, s.limit))
	}
	return in, nil
}

// around sets what stands around a job: checkpoints, network, tries.
func around(in *sagemaker.CreateTrainingJobInput, m options.Machines) {
	if m.Checkpoints != "" {
		in.CheckpointConfig = &types.CheckpointConfig{S3Uri: &m.Checkpoints, LocalPath: optional(m.CheckpointPath)}
	}
	if m.Subnet != "" || len(m.Groups) > 0 {
		in.VpcConfig = &types.VpcConfig{Subnets: []string{m.Subnet}, SecurityGroupIds: m.Groups}
	}
	if m.Isolated {
		in.EnableNetworkIsolation = aws.Bool(true)
	}
	if m.Encrypted {
		in.EnableInterContainerTrafficEncryption = aws.Bool(true)
	}
	if m.RemoteDebug {
		in.RemoteDebugConfig = &types.RemoteDebugConfig{EnableRemoteDebug: aws.Bool(true)}
	}
	if m.Retries > 0 {
		in.RetryStrategy = &types.RetryStrategy{MaximumRetryAttempts: aws.Int32(int32(m.Retries))} //nolint:gosec // at most 30
	}
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func seconds(d time.Duration) *int32 { return aws.Int32(int32(d / time.Second)) }

// waitOf is how long a job of spot machines may wait and run together.
func waitOf(m options.Machines, limit time.Duration) time.Duration {
	if w := m.Wait(); w > 0 {
		return w
	}
	return min(2*limit, longest)
}

func resourcesOf(j cloud.Job, m options.Machines) *types.ResourceConfig {
	disk := int32(usualDisk)
	if j.Spec.Disk > 0 {
		disk = int32((j.Spec.Disk + 1<<30 - 1) >> 30) //nolint:gosec // checked before
	}
	c := &types.ResourceConfig{InstanceType: types.TrainingInstanceType(j.Spec.Instance), InstanceCount: aws.Int32(int32(j.Replicas)), //nolint:gosec // at most 1000
		VolumeSizeInGB: &disk, VolumeKmsKeyId: optional(m.KMSKey)}
	if keep := m.Keep(); keep > 0 {
		c.KeepAlivePeriodInSeconds = seconds(keep)
	}
	return c
}

var modes = map[string]types.TrainingInputMode{options.File: types.TrainingInputModeFile, options.FastFile: types.TrainingInputModeFastfile, options.Pipe: types.TrainingInputModePipe}

// modeOf is how channels are read; without a word, as files.
func modeOf(word string) types.TrainingInputMode {
	if mode, is := modes[word]; is {
		return mode
	}
	return types.TrainingInputModeFile
}

func metricsOf(all [][2]string) (list []types.MetricDefinition) {
	for _, m := range all {
		list = append(list, types.MetricDefinition{Name: aws.String(m[0]), Regex: aws.String(m[1])})
	}
	return list
}

// tagsFor are the tags of a job, in order.
func tagsFor(life cloud.Life, run string, own map[string]string) (tags []types.Tag) {
	for _, key := range slices.Sorted(maps.Keys(own)) {
		tags = append(tags, types.Tag{Key: aws.String(key), Value: aws.String(own[key])})
	}
	for _, t := range [][2]string{{tagName, life.Name}, {tagLife, life.ID}, {tagRun, run}} {
		tags = append(tags, types.Tag{Key: aws.String(t[0]), Value: aws.String(tagText(t[1]))})
	}
	return tags
}

// tagText is a text as a tag's value takes it.
func tagText(text string) string {
	text = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(" +-=._:/@", r) {
			return r
		}
		return '_'
	}, text)
	return text[:min(len(text), 256)]
}

// channelsOf are the channels that a profile names.
func channelsOf(m options.Machines) (list []types.Channel, err error) {
	for _, text := range m.Channels {
		c, err := options.ParseChannel(text)
		if err != nil {
			return nil, err
		}
		made := types.Channel{ChannelName: &c.Name, DataSource: &types.DataSource{}}
		if c.Mode != "" {
			made.InputMode = modeOf(c.Mode)
		}
		if c.Gzip {
			made.CompressionType = types.CompressionTypeGzip
		}
		if c.FileSystem == "" {
			made.DataSource.S3DataSource = sourceOf(c)
		} else {
			made.DataSource.FileSystemDataSource = systemOf(c)
		}
		list = append(list, made)
	}
	return list, nil
}

func sourceOf(c options.Channel) *types.S3DataSource {
	s := &types.S3DataSource{S3DataType: types.S3DataTypeS3Prefix, S3Uri: &c.S3, S3DataDistributionType: types.S3DataDistributionFullyReplicated}
	if c.Sharded {
		s.S3DataDistributionType = types.S3DataDistributionShardedByS3Key
	}
	if c.Manifest {
		s.S3DataType = types.S3DataTypeManifestFile
	}
	return s
}

func systemOf(c options.Channel) *types.FileSystemDataSource {
	s := &types.FileSystemDataSource{FileSystemId: &c.FileSystem, FileSystemType: types.FileSystemType(c.Kind), DirectoryPath: &c.Dir,
		FileSystemAccessMode: types.FileSystemAccessModeRo}
	if c.Writable {
		s.FileSystemAccessMode = types.FileSystemAccessModeRw
	}
	return s
}

// ownChannel is where the launcher and the code come from, as files whatever the
// mode of the others.
func ownChannel(r ref) types.Channel {
	return types.Channel{ChannelName: aws.String(channelName), InputMode: types.TrainingInputModeFile, DataSource: &types.DataSource{S3DataSource: &types.S3DataSource{
		S3DataType: types.S3DataTypeS3Prefix, S3Uri: aws.String("s3://" + r.Bucket + "/" + r.Prefix + channelName + "/"), S3DataDistributionType: types.S3DataDistributionFullyReplicated}}}
}
