// Package motostory tells the life of a cluster by the real dlwb against moto, ministack
// and LocalEmu, stand-ins for AWS that others made (make test-moto). Their machines exist
// by name only: what is told is what dlwb makes, says, finds again and removes.
package motostory
