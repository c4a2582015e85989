//go:build !unix

// Package agentbuilt gives tests an agent; other systems run none.
package agentbuilt
