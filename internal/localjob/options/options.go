// Package options describes the provider local-job of tests.
package options

import "github.com/dlwb/dlwb/cloud/about"

// Provider is local-job: whole jobs, as processes of this machine.
var Provider = about.Provider{Name: "local-job", Doc: "whole jobs as processes of this machine; of tests"}
