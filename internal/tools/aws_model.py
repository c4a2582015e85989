"""Holds requests against AWS's own model of its services, as botocore has it: each file
NNN.SERVICE.OPERATION below a directory is the body of one.

    python aws_model.py DIR [LEAST]

LEAST is how many requests there have to be."""

import json
import os
import sys
import urllib.parse

import botocore.loaders
import botocore.model
import botocore.validate

SERVICES = {"AmazonEC2ContainerServiceV20141113": "ecs", "autoscaling": "autoscaling", "ec2": "ec2", "iam": "iam", "Logs_20140328": "logs", "AmazonSSM": "ssm",
            "SageMaker": "sagemaker", "monitoring": "cloudwatch", "ServiceQuotasV20190624": "service-quotas", "AWSPriceListService": "pricing"}
JSON = ("ecs", "logs", "ssm", "sagemaker", "service-quotas", "pricing")
models, faults, seen = {}, [], 0


def model(name):
    if name not in models:
        models[name] = botocore.model.ServiceModel(botocore.loaders.Loader().load_service_model(name, "service-2"), name)
    return models[name]


def wire(member, shape, service):
    name = member
    if service == "ec2":
        name = shape.serialization.get("queryName") or (shape.serialization.get("name") or member)
        name = name[0].upper() + name[1:]
    return shape.serialization.get("name", name) if service != "ec2" else name


def takes(shape, words, value, service):
    """Whether a key of a form leads to a value of a shape; else why not."""
    if shape.type_name == "structure":
        for member, inner in shape.members.items():
            if words and words[0] == wire(member, inner, service):
                return takes(inner, words[1:], value, service)
        return "no member %s of %s" % (words[:1], shape.name)
    if shape.type_name == "list":
        if service != "ec2" and words == []:
            return None  # an empty list
        if service != "ec2" and words[0] == "member":
            words = words[1:]
        if not words or not words[0].isdigit():
            return "no number in the list %s: %s" % (shape.name, words)
        return takes(shape.member, words[1:], value, service)
    if words:
        return "%s is a value, and there is %s below it" % (shape.name, words)
    if shape.type_name in ("integer", "long") and not value.lstrip("-").isdigit():
        return "%r is no number" % value
    if shape.type_name == "boolean" and value not in ("true", "false"):
        return "%r is no boolean" % value
    if shape.type_name == "string" and shape.enum and value not in shape.enum:
        return "%r is none of %s" % (value, shape.name)
    return None


for name in sorted(os.listdir(sys.argv[1])):
    _, service, operation = name.split(".", 2)
    if service not in SERVICES or operation in ("GetCallerIdentity",):
        continue
    with open(os.path.join(sys.argv[1], name)) as f:
        body = f.read()
    if SERVICES[service] not in JSON and operation not in model(SERVICES[service]).operation_names:
        faults.append("%s: no such operation of %s" % (operation, service))
        continue
    shape = model(SERVICES[service]).operation_model(operation).input_shape
    seen += 1
    if SERVICES[service] in JSON:
        report = botocore.validate.ParamValidator().validate(json.loads(body), shape)
        if report.has_errors():
            faults.append("%s: %s" % (operation, report.generate_report()))

        def enums(of, value, at):
            if of.type_name == "structure":
                for key, inner in value.items():
                    if key not in of.members:
                        faults.append("%s: no member %s.%s" % (operation, at, key))
                    else:
                        enums(of.members[key], inner, at + "." + key)
            elif of.type_name == "list":
                for inner in value:
                    enums(of.member, inner, at)
            elif of.type_name == "string" and of.enum and value not in of.enum:
                faults.append("%s: %s is %r, none of %s" % (operation, at, value, of.enum))

        enums(shape, json.loads(body), operation)
        continue
    given = set()
    for key, value in urllib.parse.parse_qsl(body, keep_blank_values=True):
        if key in ("Action", "Version"):
            continue
        given.add(key.split(".")[0])
        why = takes(shape, key.split("."), value, SERVICES[service])
        if why:
            faults.append("%s: %s: %s" % (operation, key, why))
    for member in shape.required_members:
        if wire(member, shape.members[member], SERVICES[service]) not in given:
            faults.append("%s: %s is missing" % (operation, member))

print("\n".join(sorted(set(faults))))
print("%d requests" % seen)
sys.exit(1 if faults or seen < int((sys.argv + ["50"])[2]) else 0)
