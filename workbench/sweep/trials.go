// Package sweep searches over the parameters of a training: which trials there are,
// how each is started, which is ended early, and which is the best. It knows no
// nodes: who has them gives it a few functions.
package sweep

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/profiles"
	"github.com/dlwb/dlwb/remote/engine"
)

// Trial is one run of a sweep. The trials of a profile are always the same, so that
// a sweep that was interrupted knows which it has had.
type Trial struct {
	Number   int // from 1
	Settings []profiles.Setting
}

// Trials are all trials of a profile, in the order in which they are run.
func Trials(s profiles.Sweep) []Trial {
	var all []Trial
	switch s.Method {
	case "list":
		for _, settings := range s.List {
			all = append(all, Trial{Settings: settings})
		}
	case "random":
		for n := range s.Trials {
			all = append(all, Trial{Settings: draw(s, n)})
		}
	default:
		all = grid(s.Parameters)
	}
	if s.Trials > 0 {
		all = all[:min(len(all), s.Trials)]
	}
	for i := range all {
		all[i].Number = i + 1
	}
	return all
}

// grid has every combination; the last parameter changes first.
func grid(parameters []profiles.Parameter) []Trial {
	all := []Trial{{}}
	for _, p := range parameters {
		var next []Trial
		for _, t := range all {
			for _, v := range p.Values {
				settings := append(t.Settings[:len(t.Settings):len(t.Settings)], profiles.Setting{Name: p.Name, Value: v})
				next = append(next, Trial{Settings: settings})
			}
		}
		all = next
	}
	return all
}

// draw draws a trial. Each has a source of its own, so that more trials are added to
// those that were, and a parameter that is added changes no other.
func draw(s profiles.Sweep, n int) []profiles.Setting {
	var settings []profiles.Setting
	for _, p := range s.Parameters {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %d %s", s.Seed, n, p.Name))
		settings = append(settings, profiles.Setting{Name: p.Name, Value: drawn(p, rand.New(rand.NewChaCha8(sum)))})
	}
	return settings
}

func drawn(p profiles.Parameter, r *rand.Rand) string {
	between := func(low, high float64) float64 { return min(low+(high-low)*r.Float64(), high) }
	switch p.Kind {
	case profiles.ParameterUniform:
		return text(between(p.Low, p.High))
	case profiles.ParameterLogUniform:
		return text(min(max(math.Exp(between(math.Log(p.Low), math.Log(p.High))), p.Low), p.High))
	case profiles.ParameterInt:
		return whole(p.Low + float64(r.Int64N(int64(p.High-p.Low)+1)))
	case profiles.ParameterLogInt: // each number has the room that it has on the axis
		v := math.Floor(math.Exp(between(math.Log(p.Low), math.Log(p.High+1))))
		return whole(min(max(v, p.Low), p.High))
	}
	return p.Values[r.IntN(len(p.Values))]
}

// text is a number with as many digits as a person reads.
func text(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func whole(v float64) string { return strconv.FormatInt(int64(v), 10) }

// ID names a sweep: the same search of the same command has the same, and goes on
// where it was left. again counts how often it was begun anew. What the trials are
// compared by is no part of it: whoever mends metric or mode wants no trial run again.
func ID(p *profiles.Profile, again int) string {
	s := p.Sweep
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %d %+v %+v %q", p.Run.Command, p.Run.Engine, s.Method, s.Seed, s.Parameters, s.List, s.Arguments)
	id := "s" + hex.EncodeToString(h.Sum(nil))[:6]
	if again > 0 {
		id += "." + strconv.Itoa(again)
	}
	return id
}

// Newest is the ID of the sweep that was begun last, or with again, where that has
// begun, of a new one. past is Owner.Past.
func Newest(p *profiles.Profile, again bool, past func(run string) (Past, bool, error)) (string, error) {
	n := 0
	has := func(n int) (bool, error) {
		_, is, err := past(RunID(p.Name, ID(p, n), 1, 0))
		return is, err
	}
	for {
		next, err := has(n + 1)
		if err != nil {
			return "", err
		}
		if !next {
			break
		}
		n++
	}
	if again {
		if begun, err := has(n); err != nil {
			return "", err
		} else if begun {
			n++
		}
	}
	return ID(p, n), nil
}

// RunID is the id of the run of a trial. try counts launches of which nothing ran.
func RunID(profile, sweep string, trial, try int) string {
	id := fmt.Sprintf("%s-%s-t%02d", profile, sweep, trial)
	if try > 0 {
		id += "." + strconv.Itoa(try)
	}
	return id
}

// defaultArguments is how a parameter is written where the profile does not say.
const defaultArguments = "--{name}={value}"

// Of is the profile of one trial.
func Of(p *profiles.Profile, t Trial, sweep string) *profiles.Profile {
	own := *p
	own.Sweep = profiles.Sweep{}
	own.Run.Env = append(own.Run.Env[:len(own.Run.Env):len(own.Run.Env)],
		profiles.Var{Name: "DLWB_SWEEP", Value: sweep}, profiles.Var{Name: "DLWB_TRIAL", Value: strconv.Itoa(t.Number)})
	for _, s := range t.Settings {
		own.Run.Env = append(own.Run.Env, profiles.Var{Name: profiles.ParameterVariable(s.Name), Value: s.Value})
	}
	if words, err := engine.Split(own.Run.Command); err == nil { // else the launch says what is wrong with it
		own.Run.Command = engine.Join(withSettings(words, p.Sweep.Arguments, t.Settings))
	}
	return &own
}

// withSettings puts the parameters into a command, each where its place is, or behind
// it. It is done word by word, so that a value is what the script gets, whatever is
// in it and in whatever quotes its place stands.
func withSettings(words []string, form string, settings []profiles.Setting) []string {
	if form == "" {
		form = defaultArguments
	}
	argument, err := engine.Split(form)
	if form == "none" || err != nil {
		argument = nil
	}
	command := strings.Join(words, "\x00")
	var places, behind []string
	for _, s := range settings {
		place := "{" + s.Name + "}"
		places = append(places, place, s.Value)
		if strings.Contains(command, place) {
			continue
		}
		for _, w := range argument {
			behind = append(behind, strings.NewReplacer("{name}", s.Name, "{value}", s.Value).Replace(w))
		}
	}
	put := strings.NewReplacer(places...)
	all := make([]string, len(words), len(words)+len(behind))
	for i, w := range words {
		all[i] = put.Replace(w)
	}
	return append(all, behind...)
}
