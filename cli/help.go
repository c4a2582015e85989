package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/settings"
	"github.com/dlwb/dlwb/ui"
)

// flagHelp is a flag as the help shows it.
type flagHelp struct {
	Name    string `json:"name"`
	Short   string `json:"short,omitempty"`
	Type    string `json:"type"`
	Default string `json:"default,omitempty"`
	Text    string `json:"text"`
}

// helpAnswer is the help of a command with --json.
type helpAnswer struct {
	Command  string     `json:"command"`
	Usage    string     `json:"usage"`
	Text     string     `json:"text"`
	Flags    []flagHelp `json:"flags"`
	Commands []string   `json:"commands"`
}

// helpCommand replaces cobra's own, which answers a word that is no command
// with the whole help and exit code 0.
func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND|TOPIC]", Short: "how a command is used; topics: profile, settings, commands",
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, c := range root.Commands() {
				if !c.Hidden {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(root, args[0])
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

// topics are pages of the help that are no commands.
func (a *app) topics() []*cobra.Command {
	page := func(name, short string, text func() string) *cobra.Command {
		c := &cobra.Command{Use: name, Short: short}
		c.SetHelpFunc(func(c *cobra.Command, _ []string) {
			if a.json {
				_ = a.encode(helpAnswer{Command: c.CommandPath(), Text: text(), Flags: []flagHelp{}, Commands: []string{}})
				return
			}
			_, _ = io.WriteString(a.out, text())
		})
		return c
	}
	return []*cobra.Command{
		page("profile", "every key of a profile", func() string { return string(profiles.Reference()) }),
		page("settings", "what you can allow, and no profile can", settings.Reference),
		page("keys", "every key of the screen, by screen", ui.KeysPage),
		page("commands", "every command, its flags, and what it answers with --json", CommandReference),
	}
}

// jsonHelp answers --help in the form that was asked for.
func (a *app) jsonHelp(root *cobra.Command) {
	plain := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		if !a.json {
			plain(c, args)
			return
		}
		h := helpAnswer{Command: c.CommandPath(), Usage: c.UseLine(), Text: textOf(c), Flags: flagsOf(c), Commands: []string{}}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				h.Commands = append(h.Commands, sub.Name())
			}
		}
		_ = a.encode(h)
	})
}

func textOf(c *cobra.Command) string {
	if c.Long != "" {
		return c.Long
	}
	return c.Short
}

// flagsOf lists the flags of a command, its own first.
func flagsOf(c *cobra.Command) []flagHelp {
	flags := []flagHelp{}
	add := func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		h := flagHelp{Name: f.Name, Short: f.Shorthand, Type: f.Value.Type(), Text: f.Usage}
		if f.DefValue != "false" && f.DefValue != "[]" {
			h.Default = f.DefValue
		}
		flags = append(flags, h)
	}
	c.LocalNonPersistentFlags().VisitAll(add)
	c.Root().PersistentFlags().VisitAll(add)
	return flags
}

// versionFlag adds --version. Cobra's own takes a text/template for words like
// ours, and a program with a template in it keeps every method of every service:
// the linker can't know which of them one might name.
func (a *app) versionFlag(root *cobra.Command) {
	asked := root.Flags().BoolP("version", "v", false, "print the version")
	args, run := root.Args, root.RunE
	root.Args = func(c *cobra.Command, given []string) error {
		if *asked {
			return nil
		}
		return args(c, given)
	}
	root.RunE = func(c *cobra.Command, given []string) error {
		if !*asked {
			return run(c, given)
		}
		_, err := io.WriteString(c.OutOrStdout(), versionText(a.json))
		return err
	}
}

// versionText is what --version prints.
func versionText(asJSON bool) string {
	if !asJSON {
		return "dlwb " + Version + "\n"
	}
	b, err := sanitize.MarshalJSON(map[string]string{"version": Version})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s\n", b)
}
