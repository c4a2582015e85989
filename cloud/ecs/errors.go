package ecs

import (
	"errors"
	"strings"

	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// plainError is what is wrong, with what to do about it.
type plainError struct{ text, next string }

func (e *plainError) Error() string { return e.text }

// Advice says what to do.
func (e *plainError) Advice() string { return e.next }

// absent reports whether AWS has said that a thing is not there.
func absent(err error) bool {
	code, says := awsapi.CodeOf(err)
	switch code {
	case "ClusterNotFoundException", "ServiceNotFoundException", "ServiceNotActiveException", "ResourceNotFoundException",
		"InvalidGroup.NotFound", "InvalidPlacementGroup.Unknown", "InvalidLaunchTemplateName.NotFoundException", "InvalidLaunchTemplateId.NotFound", "ParameterNotFound":
		return true
	case "ValidationError":
		return strings.Contains(says, "not found") // of Auto Scaling
	case "ClientException", "InvalidParameterException":
		low := strings.ToLower(says)
		return strings.Contains(low, "does not exist") || strings.Contains(low, "not found") || strings.Contains(low, "unable to describe")
	}
	return false
}

// exists reports whether a name is taken. The names have the id of the life in
// them: what has one is of this life.
func exists(err error) bool {
	code, says := awsapi.CodeOf(err)
	switch code {
	case "AlreadyExists", "AlreadyExistsFault", "InvalidGroup.Duplicate", "InvalidPlacementGroup.Duplicate", "InvalidLaunchTemplateName.AlreadyExistsException",
		"ResourceAlreadyExistsException", "ParameterAlreadyExists":
		return true
	}
	return strings.Contains(says, "already exists") || strings.Contains(says, "not idempotent")
}

// busy reports whether AWS refuses to remove something for as long as something else
// goes away, or is still being made.
func busy(err error) bool {
	code, says := awsapi.CodeOf(err)
	switch code {
	case "DependencyViolation", "InvalidPlacementGroup.InUse", "ResourceInUse", "ResourceInUseFault", "ResourceInUseException", "ScalingActivityInProgress", "ScalingActivityInProgressFault",
		"ClusterContainsContainerInstancesException", "ClusterContainsServicesException", "ClusterContainsTasksException", "ClusterContainsCapacityProviderException",
		"UpdateInProgressException", "ResourceContention", "ResourceContentionFault", "OperationAbortedException":
		return true
	}
	return strings.Contains(says, "in use")
}

// explain says what an error of a call means.
func (d *door) explain(err error) error {
	if err == nil || ended(err) {
		return err
	}
	var plain *plainError
	if errors.As(err, &plain) {
		return err
	}
	code, says := awsapi.CodeOf(err)
	switch code {
	case "ClientException", "InvalidParameterException", "ValidationError", "InvalidRequest":
		return &plainError{"AWS refuses it: " + says, "look at the keys of machines in the profile"}
	}
	return awsapi.Explain(err, awsapi.Call{Region: d.region})
}

// permanent reports whether asking again can't help.
func permanent(err error) bool {
	var p *awsapi.Problem
	var plain *plainError
	return errors.As(err, &plain) || errors.As(err, &p) && (p.Kind == awsapi.NoPermission || p.Kind == awsapi.NoCredentials)
}
