package profiles

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/nearword"
)

// GivenSecret is a variable that the user names instead of the profile: its
// value is that of the shell that started dlwb, and it is treated as one that a
// profile refers to.
func GivenSecret(name string) (Var, error) { return givenSecret(name, os.Environ()) }

func givenSecret(name string, environ []string) (Var, error) {
	fail := func(why string) (Var, error) { return Var{}, errors.New("--secret " + quote(name) + ": " + why) }
	switch {
	case strings.Contains(name, "="):
		name, _, _ = strings.Cut(name, "=")
		return fail("give the name alone: what stands on a command line, others can read; export " + name + "=… first")
	case !variableForm.MatchString(name):
		return fail("this is no name of a variable: letters, digits and _; the first is no digit")
	case slices.Contains(rankVariables, name) || strings.HasPrefix(name, "DLWB_"):
		return fail("dlwb sets this itself, for each rank")
	}
	var names []string
	for _, v := range environ {
		set, value, _ := strings.Cut(v, "=")
		if set != name {
			names = append(names, set)
			continue
		}
		if strings.ContainsAny(value, "\n\r\x00") {
			return fail("its value has more than one line; give the training a file instead")
		}
		return Var{Name: name, Value: value, Secret: true, Ref: "${env:" + name + "}"}, nil
	}
	near := ""
	if n := nearword.Nearest(name, names); n != "" {
		near = fmt.Sprintf(" did you mean %s?", n)
	}
	return fail("it is not set in the shell that started dlwb;" + near + " export " + name + "=… and start dlwb again")
}
