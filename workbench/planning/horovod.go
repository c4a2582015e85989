package planning

import (
	"context"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/cloud/providers"
	"github.com/dlwb/dlwb/internal/shellword"
	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
	"github.com/dlwb/dlwb/remote/environment"
)

// AsksOfMPI reports whether it has to be known of node 0 what HorovodLine asks.
func AsksOfMPI(p *profiles.Profile) bool {
	name := engineAsked(p)
	return engine.MayUseMPI(name) && !slices.Contains(providers.Named(p.Provider).Carries, name)
}

// HorovodLine is a line of sh by which a node says whether Horovod can use MPI in an
// environment of a run; see WithoutMPI. Secrets of the profile are not in it.
func HorovodLine(p *profiles.Profile, env environment.Result, run string) string {
	given := slices.DeleteFunc(slices.Clone(p.Run.Env), func(v profiles.Var) bool { return v.Secret })
	vars := engine.MergeEnv(env.Env, Environ(EnvOfRun(given, run), false))
	return shellword.Join(slices.Concat([]string{"env"}, vars, env.Wrap, []string{env.Python, "-c", engine.HorovodLook})...)
}

// WithoutMPI reads what HorovodLine has printed.
func WithoutMPI(printed []byte) bool {
	return slices.Contains(strings.Fields(string(printed)), "gloo")
}

// mpiConditions are how Horovod's ranks may find each other, where that is not the same
// anyway. On the local provider this machine tells, once its Python is known.
func (p *Plan) mpiConditions(ctx context.Context, base Site) []branch {
	if !AsksOfMPI(p.Profile) {
		return []branch{{set: func(*Site) {}}}
	}
	if traits(p.Provider).SharedHost && base.Python != namePython {
		code, out, _, err := ThisMachine{}.Exec(ctx, HorovodLine(p.Profile, environment.Result{Python: base.Python}, nameRun))
		if code == 0 && err == nil {
			return []branch{{set: func(s *Site) { s.NoMPI = WithoutMPI(out) }}}
		}
	}
	without := base
	without.NoMPI = true
	one, err := LayRanks(p.Profile, base)
	other, failed := LayRanks(p.Profile, without)
	if err != nil || failed != nil || slices.Equal(RankInfos(one), RankInfos(other)) {
		return []branch{{set: func(*Site) {}}}
	}
	return []branch{
		{when: "Horovod can use MPI on node0", set: func(s *Site) { s.NoMPI = false }},
		{when: "Horovod can't use MPI on node0", set: func(s *Site) { s.NoMPI = true }},
	}
}
