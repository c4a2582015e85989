// Package ec2story holds tests alone: the real dlwb against an AWS that is ours
// to break and machines that are local nodes.
package ec2story
