package cli

import (
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/settings"
)

// allowFlags are the user's word, for one call, that a profile may go further
// than its own directory.
func (a *app) allowFlags(c *cobra.Command) {
	c.Flags().StringArrayVar(&a.allowed.AllowCode, "allow-code", nil, "let the profile send this directory although it lies outside its own (repeatable)")
	c.Flags().StringArrayVar(&a.allowed.Send, "send-secret", nil, "send what this pattern names although it looks like a secret (repeatable)")
}

// secretFlag names what the run gets of the user's own secrets.
func (a *app) secretFlag(c *cobra.Command) {
	c.Flags().StringArrayVar(&a.allowed.Secrets, "secret", nil, "give the run the variable of this name of your shell, as a secret (repeatable)")
}

// checkSecrets finds a secret that can't be given before anything is begun.
func (a *app) checkSecrets() error {
	for _, name := range a.allowed.Secrets {
		if _, err := profiles.GivenSecret(name); err != nil {
			return usageError{err}
		}
	}
	return nil
}

// settings are the user's: the file, and what was said on the command line. That
// holds for the profile of the command, and for no other that is run later from
// the same screen.
func (a *app) settings(profile string) (settings.Settings, error) {
	s, err := settings.Load()
	if a.planned != "" && profile != a.planned {
		return s, err
	}
	for _, dir := range a.allowed.AllowCode {
		if abs, err := filepath.Abs(dir); err == nil {
			dir = abs
		}
		s.AllowCode = append(s.AllowCode, dir)
	}
	s.Send = append(s.Send, a.allowed.Send...)
	s.Secrets = slices.Clone(a.allowed.Secrets)
	return s, err
}
