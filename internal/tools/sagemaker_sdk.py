"""Writes what the official SageMaker SDK (2.x) sends for the documented examples,
one file for each, into a directory. Nothing is sent to anybody: the call is taken
where botocore would send it, and other addresses than loopback are refused.

    python sagemaker_sdk.py DIR
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
import sagemaker  # noqa: E402
from sagemaker.estimator import Estimator  # noqa: E402
from sagemaker.inputs import FileSystemInput, TrainingInput  # noqa: E402
from sagemaker.pytorch import PyTorch  # noqa: E402
from sagemaker.tensorflow import TensorFlow  # noqa: E402

ROLE = "arn:aws:iam::123456789012:role/Training"
SOURCE = "s3://ml-lab/code/sourcedir.tar.gz"


class Taken(Exception):
    pass


def take(fit):
    """The parameters of the CreateTrainingJob that fit makes."""
    taken = {}
    boto = boto3.Session(region_name="us-west-2")
    client = boto.client("sagemaker")

    def hook(params, **_):
        taken.update(params)
        raise Taken

    client.meta.events.register("provide-client-params.sagemaker.CreateTrainingJob", hook)
    session = sagemaker.Session(boto_session=boto, sagemaker_client=client, default_bucket="ml-lab")
    session._default_bucket = "ml-lab"
    try:
        fit(session)
    except Taken:
        pass
    if not taken:
        raise SystemExit("no call was made")
    return taken


def pytorch(session, inputs=None, **more):
    args = dict(entry_point="train.py", source_dir=SOURCE, role=ROLE, framework_version="2.8.0", py_version="py312", instance_count=1,
                instance_type="ml.g5.xlarge", output_path="s3://ml-lab/models", sagemaker_session=session)
    args.update(more)
    PyTorch(**args).fit(inputs, job_name="job-1", wait=False)


def tensorflow(session, inputs=None, **more):
    args = dict(entry_point="train.py", source_dir=SOURCE, role=ROLE, framework_version="2.19.0", py_version="py312", instance_count=2,
                instance_type="ml.g5.xlarge", output_path="s3://ml-lab/models", sagemaker_session=session)
    args.update(more)
    TensorFlow(**args).fit(inputs, job_name="job-1", wait=False)


def own_image(session):
    Estimator(image_uri="123456789012.dkr.ecr.us-west-2.amazonaws.com/train:1", role=ROLE, instance_count=1, instance_type="ml.m5.large",
              output_path="s3://ml-lab/models", sagemaker_session=session, hyperparameters={"epochs": "3"},
              container_entry_point=["python3", "/train.py"]).fit(
        {"train": "s3://ml-lab/train"}, job_name="job-1", wait=False)


CASES = {
    "script-mode": lambda s: pytorch(s, hyperparameters={"epochs": 3, "lr": 0.001, "backend": "gloo", "name": 'a "b" \u00e4'}, max_run=43200),
    "spot-checkpoints": lambda s: pytorch(s, use_spot_instances=True, max_run=3600, max_wait=7200, checkpoint_s3_uri="s3://ml-lab/ckpt/charlm",
                                          checkpoint_local_path="/opt/ml/checkpoints"),
    "channels": lambda s: pytorch(s, {
        "train": TrainingInput("s3://ml-lab/train", distribution="ShardedByS3Key", input_mode="FastFile"),
        "val": TrainingInput("s3://ml-lab/val"),
        "stream": TrainingInput("s3://ml-lab/stream", input_mode="Pipe", compression="Gzip"),
        "list": TrainingInput("s3://ml-lab/list.manifest", s3_data_type="ManifestFile"),
        "home": FileSystemInput("fs-0123456789abcdef0", "EFS", "/data", "ro"),
        "fast": FileSystemInput("fs-0fedcba9876543210", "FSxLustre", "/fsx/imagenet", "rw"),
    }, subnets=["subnet-1"], security_group_ids=["sg-1", "sg-2"]),
    "mpi": lambda s: pytorch(s, instance_count=2, distribution={"mpi": {"enabled": True, "processes_per_host": 8, "custom_mpi_options": "-verbose -x NCCL_DEBUG=INFO"}}),
    "data-parallel": lambda s: pytorch(s, instance_count=2, instance_type="ml.p4d.24xlarge", framework_version="2.0.1", py_version="py310",
                                       distribution={"smdistributed": {"dataparallel": {"enabled": True, "custom_mpi_options": "-x NCCL_DEBUG=VERSION"}}}),
    "torch-distributed": lambda s: pytorch(s, instance_count=2, instance_type="ml.g5.12xlarge", distribution={"torch_distributed": {"enabled": True}}),
    "pytorchddp": lambda s: pytorch(s, instance_count=2, instance_type="ml.p4d.24xlarge", framework_version="2.0.1", py_version="py310", distribution={"pytorchddp": {"enabled": True}}),
    "parameter-server": lambda s: tensorflow(s, distribution={"parameter_server": {"enabled": True}}, model_dir=False),
    "multi-worker-mirrored": lambda s: tensorflow(s, distribution={"multi_worker_mirrored_strategy": {"enabled": True}}, model_dir=False),
    "around": lambda s: pytorch(s, instance_type="ml.m5.large", volume_size=100, volume_kms_key="alias/k", output_kms_key="alias/k", keep_alive_period_in_seconds=1800,
                                metric_definitions=[{"Name": "loss", "Regex": "loss ([0-9.]+)"}], tags=[{"Key": "project", "Value": "charlm"}],
                                encrypt_inter_container_traffic=True, max_retry_attempts=2, environment={"A": "b"}, subnets=["subnet-1"], security_group_ids=["sg-1"]),
    "remote-debug": lambda s: pytorch(s, enable_remote_debug=True),
    "own-image": own_image,
}


def main(directory):
    os.makedirs(directory, exist_ok=True)
    for name, fit in CASES.items():
        with open(os.path.join(directory, name + ".json"), "w") as f:
            json.dump(take(fit), f, indent=2, sort_keys=True)
            f.write("\n")
    print("sagemaker %s: %d calls" % (sagemaker.__version__, len(CASES)))


main(sys.argv[1])
