// Package providers is the table of providers. The profile format, the plan, the
// trust gate, the wizard and the reference pages read it; the code of the
// providers is made known to the workbench by the command line.
package providers

import (
	"slices"

	"github.com/dlwb/dlwb/cloud/about"
	ec2 "github.com/dlwb/dlwb/cloud/ec2/options"
	ecs "github.com/dlwb/dlwb/cloud/ecs/options"
	hosts "github.com/dlwb/dlwb/cloud/hosts/options"
	kubernetes "github.com/dlwb/dlwb/cloud/kubernetes/options"
	local "github.com/dlwb/dlwb/cloud/local/options"
	sagemaker "github.com/dlwb/dlwb/cloud/sagemaker/options"
	slurm "github.com/dlwb/dlwb/cloud/slurm/options"
)

// All are the providers that a profile may name, in the order in which they are
// listed. The first is the default.
var All = []about.Provider{local.Provider, hosts.Provider, ec2.Provider, kubernetes.Provider, slurm.Provider, sagemaker.Provider, ecs.Provider, batch}

// The providers that have a name and keys in the profile format, and no code
// yet. Their descriptions move to folders of their own with their code.
var (
	batch = about.Provider{
		Name: "aws-batch", Also: []string{"batch", "fargate"}, Planned: ec2.Provider.Name,
		Keys: slices.Concat(about.InstanceKeys, about.PaidKeys),
	}
)

// Default is the provider of a profile that names none.
func Default() about.Provider { return All[0] }

// Named is the provider of that name; one without traits where there is none.
func Named(name string) about.Provider {
	if i := slices.IndexFunc(All, func(p about.Provider) bool { return p.Name == name }); i >= 0 {
		return All[i]
	}
	return about.Provider{Name: name}
}

// Names are the names of all providers.
func Names() []string { return namesOf(func(about.Provider) bool { return true }) }

// Usable are the names of those that have code.
func Usable() []string { return namesOf(func(p about.Provider) bool { return p.Planned == "" }) }

// Priced are the names of those whose machines are chosen from offers.
func Priced() []string { return namesOf(func(p about.Provider) bool { return p.Traits.Priced }) }

// Having are the names of those that have a key of a profile; nil where no
// provider lists it, because all have it.
func Having(key string) []string {
	return namesOf(func(p about.Provider) bool { return p.Has(key) })
}

// Needing are the names of those that need a key of a profile.
func Needing(key string) []string {
	return namesOf(func(p about.Provider) bool { return slices.Contains(p.Needs, key) })
}

func namesOf(which func(about.Provider) bool) []string {
	var names []string
	for _, p := range All {
		if which(p) {
			names = append(names, p.Name)
		}
	}
	return names
}
