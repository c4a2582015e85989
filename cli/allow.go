package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/settings"
)

// allowFlags are the user's word, for one call, that a profile may go further
// than its own directory.
func (a *app) allowFlags(c *cobra.Command) {
	c.Flags().StringArrayVar(&a.allowed.AllowCode, "allow-code", nil, "let the profile send this directory although it lies outside its own (repeatable)")
	c.Flags().StringArrayVar(&a.allowed.Send, "send-secret", nil, "send what this pattern names although it looks like a secret (repeatable)")
}

// settings are the user's: the file, and what was said on the command line.
func (a *app) settings() (settings.Settings, error) {
	s, err := settings.Load()
	for _, dir := range a.allowed.AllowCode {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		s.AllowCode = append(s.AllowCode, dir)
	}
	s.Send = append(s.Send, a.allowed.Send...)
	return s, err
}
