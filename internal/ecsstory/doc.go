// Package ecsstory tells the life of Ray clusters on ECS with the real dlwb against
// internal/fakeecs: it is all tests.
package ecsstory
