//go:build !race

package ec2story

var raced []string
