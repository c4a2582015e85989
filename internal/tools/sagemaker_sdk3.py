"""Writes what the official SageMaker SDK (3.x, ModelTrainer) sends for the documented
examples, one file for each, into a directory. Nothing is sent to anybody: the call is
taken where botocore would send it, and other addresses than loopback are refused.

    python sagemaker_sdk3.py DIR
"""

import json
import os
import socket
import sys
import tempfile

config = tempfile.NamedTemporaryFile("w", suffix=".yaml", delete=False)
config.write("SchemaVersion: '1.0'\nSageMaker:\n  PythonSDK:\n    Modules:\n      TelemetryOptOut: true\n")
config.close()
os.environ.update(SAGEMAKER_USER_CONFIG_OVERRIDE=config.name, AWS_ACCESS_KEY_ID="AKIAIOSFODNN7EXAMPLE", AWS_SECRET_ACCESS_KEY="x",
                  AWS_DEFAULT_REGION="us-west-2", AWS_EC2_METADATA_DISABLED="true", AWS_CONFIG_FILE=os.devnull, AWS_SHARED_CREDENTIALS_FILE=os.devnull)
connect = socket.socket.connect


def only_here(self, address):
    if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError("this program connects to nobody: %s" % (address,))
    return connect(self, address)


socket.socket.connect = only_here

import boto3  # noqa: E402
import botocore.client  # noqa: E402
from importlib.metadata import version  # noqa: E402
from sagemaker.core.helper.session_helper import Session  # noqa: E402
from sagemaker.core.shapes import Channel, DataSource, FileSystemDataSource, MetricDefinition, RetryStrategy, S3DataSource, StoppingCondition, Tag  # noqa: E402
from sagemaker.core.training.configs import CheckpointConfig, Compute, InputData, Networking, OutputDataConfig, SourceCode  # noqa: E402
from sagemaker.train import ModelTrainer, model_trainer  # noqa: E402
from sagemaker.train.distributed import MPI, Torchrun  # noqa: E402

ROLE = "arn:aws:iam::123456789012:role/Training"
IMAGE = "763104351884.dkr.ecr.us-west-2.amazonaws.com/pytorch-training:2.8.0-gpu-py312"
model_trainer._get_unique_name = lambda base, *_: "job-1"
CODE = tempfile.mkdtemp()
with open(os.path.join(CODE, "train.py"), "w") as script:
    script.write("print(1)\n")
taken = {}


class Taken(Exception):
    pass


def call(self, operation, params, made=botocore.client.BaseClient._make_api_call):
    if operation == "CreateTrainingJob":
        taken.update(params)
        raise Taken
    if operation == "SimulatePrincipalPolicy":
        return {"EvaluationResults": [{"EvalActionName": name, "EvalDecision": "allowed"} for name in params["ActionNames"]]}
    if operation == "GetRole":
        return {"Role": {"RoleName": "Training", "Arn": ROLE, "AssumeRolePolicyDocument": {"Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "sagemaker.amazonaws.com"}}]}}}
    return made(self, operation, params)


botocore.client.BaseClient._make_api_call = call


def take(inputs=None, prepare=lambda t: t, **more):
    """The parameters of the CreateTrainingJob that a trainer makes."""
    taken.clear()
    session = Session(boto_session=boto3.Session(region_name="us-west-2"), default_bucket="ml-lab")
    session._default_bucket = "ml-lab"
    session.upload_data = lambda path, bucket, key_prefix, **_: "s3://%s/%s" % (bucket, key_prefix)
    args = dict(training_image=IMAGE, source_code=SourceCode(source_dir=CODE, entry_script="train.py"), role=ROLE,
                compute=Compute(instance_type="ml.g5.xlarge", instance_count=1), output_data_config=OutputDataConfig(s3_output_path="s3://ml-lab/models"),
                stopping_condition=StoppingCondition(max_runtime_in_seconds=86400), base_job_name="job", sagemaker_session=session)
    args.update(more)
    try:
        prepare(ModelTrainer(**args)).train(input_data_config=inputs, wait=False, logs=False)
    except Taken:
        pass
    if not taken:
        raise SystemExit("no call was made")
    return dict(taken)


def file_system(name, kind, path, mode):
    return FileSystemDataSource(file_system_id=name, file_system_type=kind, directory_path=path, file_system_access_mode=mode)


def channel(name, uri, mode=None, distribution="FullyReplicated", kind="S3Prefix", gzip=False):
    more = {"input_mode": mode} if mode else {}
    if gzip:
        more["compression_type"] = "Gzip"
    return Channel(channel_name=name, data_source=DataSource(s3_data_source=S3DataSource(s3_data_type=kind, s3_uri=uri, s3_data_distribution_type=distribution)), **more)


CASES = {
    "script-mode": lambda: take(hyperparameters={"epochs": 3, "lr": 0.001, "name": 'a "b" \u00e4'}, stopping_condition=StoppingCondition(max_runtime_in_seconds=43200)),
    "spot-checkpoints": lambda: take(compute=Compute(instance_type="ml.g5.xlarge", instance_count=1, enable_managed_spot_training=True),
                                     stopping_condition=StoppingCondition(max_runtime_in_seconds=3600, max_wait_time_in_seconds=7200),
                                     checkpoint_config=CheckpointConfig(s3_uri="s3://ml-lab/ckpt/charlm", local_path="/opt/ml/checkpoints")),
    "channels": lambda: take([
        channel("train", "s3://ml-lab/train", "FastFile", "ShardedByS3Key"),
        InputData(channel_name="val", data_source="s3://ml-lab/val"),
        channel("stream", "s3://ml-lab/stream", "Pipe", gzip=True),
        channel("list", "s3://ml-lab/list.manifest", kind="ManifestFile"),
        InputData(channel_name="home", data_source=file_system("fs-0123456789abcdef0", "EFS", "/data", "ro")),
        InputData(channel_name="fast", data_source=file_system("fs-0fedcba9876543210", "FSxLustre", "/fsx/imagenet", "rw")),
    ], networking=Networking(subnets=["subnet-1"], security_group_ids=["sg-1", "sg-2"])),
    "torchrun": lambda: take(compute=Compute(instance_type="ml.g5.12xlarge", instance_count=2), distributed=Torchrun()),
    "mpi": lambda: take(compute=Compute(instance_type="ml.g5.xlarge", instance_count=2), distributed=MPI(process_count_per_node=8, mpi_additional_options=["-x", "NCCL_DEBUG=INFO"])),
    "around": lambda: take([InputData(channel_name="train", data_source="s3://ml-lab/train")], compute=Compute(instance_type="ml.m5.large", instance_count=1, volume_size_in_gb=100, volume_kms_key_id="alias/k", keep_alive_period_in_seconds=1800),
                           output_data_config=OutputDataConfig(s3_output_path="s3://ml-lab/models", kms_key_id="alias/k"), training_input_mode="FastFile", environment={"A": "b"},
                           networking=Networking(subnets=["subnet-1"], security_group_ids=["sg-1"], enable_inter_container_traffic_encryption=True, enable_network_isolation=True),
                           tags=[Tag(key="project", value="charlm")],
                           prepare=lambda t: t.with_metric_definitions([MetricDefinition(name="loss", regex="loss ([0-9.]+)")]).with_retry_strategy(RetryStrategy(maximum_retry_attempts=2))),
}


def main(directory):
    os.makedirs(directory, exist_ok=True)
    for name, made in CASES.items():
        with open(os.path.join(directory, name + ".json"), "w") as f:
            json.dump(made(), f, indent=2, sort_keys=True)
            f.write("\n")
    print("sagemaker-train %s, sagemaker-core %s: %d calls" % (version("sagemaker-train"), version("sagemaker-core"), len(CASES)))


main(sys.argv[1])
