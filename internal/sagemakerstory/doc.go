// Package sagemakerstory tells the life of training jobs with the real dlwb against
// internal/fakesagemaker: it is all tests.
package sagemakerstory
