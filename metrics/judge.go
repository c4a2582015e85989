package metrics

import (
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/remark"
	"github.com/dlwb/dlwb/metrics/sense"
)

// judged drops values that nothing in the line vouches for: a line is about the
// training when it says where the run is or names a loss or a score. Settings
// have names of metrics too (momentum, iou), but stand in neither.
func (s *scanner) judged() []value {
	f := &s.found
	placed, scored := len(f.counters) > 0 || f.pass.total > 0 || s.evaluates || s.assumed, false
	vouched, splitsAlone, ofSplit := false, 0, 0
	for _, v := range f.values {
		scored = scored || v.kind == score && (!v.blank || v.Real)
		vouched = vouched || v.kind == score && !v.weak && v.Real
		if v.bareSplit {
			splitsAlone++
		}
		if v.weak && v.Real && Split(v.show) != "" {
			ofSplit++
		}
	}
	if ofSplit > 1 { // "dev: precision 0.5, recall 0.4"
		placed, scored, vouched = true, true, true
	}
	kept, here := f.values[:0], "" // the split that a name said last
	for _, v := range f.values {
		if split := Split(v.show); split != "" {
			here = split
		}
		switch {
		case len(f.values) > 1 && strings.HasSuffix(v.show, "epoch_time"): // beside what it took the time for, it is a clock
			s.passedOver.add(v.show, "its name is that of a clock")
			continue
		case v.bareSplit && splitsAlone > 1: // "Train: 0.55, Val: 0.53, Test: 0.47"
		case v.paired && v.kind == unknown && scored: // one of several that a loss is among
		case v.paired && v.kind == unknown || !placed && !scored && !s.below && !s.ofSplit(v) && !(s.goesOn && remark.IsNew(s.line[s.from:])) && !(v.rate && v.kind >= measure && !v.blank):
			s.passedOver.add(v.show, "nothing says where the run was, and no loss or score stands beside it")
			continue
		case v.bareNorm && (!placed || s.under), v.bareSplit && !placed, v.doubt && !placed, v.blank && !placed && (!v.Real || v.weak && !vouched), v.kind == unknown && !placed && !s.inDict && !s.below && !s.ofSplit(v) && !(vouched && v.Real && !v.blank):
			s.passedOver.add(v.show, "nothing says where the run was")
			continue
		case v.term.average && (v.term.split == "" && (!placed || s.under) && strings.IndexByte(v.show, '/') < 0 || several(f.values, "loss")):
			v.show = s.names.averaged(v.show)
		}
		if i := indexOf(kept, v.show); i >= 0 {
			first := &kept[i]
			if here != "" && here != "train" && Split(v.show) == "" { // "train_loss=0.5 acc=0.8 | val_loss=0.6 acc=0.7"
				if of := s.names.validatedAs(here+"/", v.show); indexOf(kept, of) < 0 {
					v.show = of
					v.sure = v.kind == score || placed && v.kind >= measure
					kept = append(kept, v)
				}
				continue
			}
			if first.average != v.average { // "Reward: 12 | Avg Reward (last 100): 10"
				if mean := s.names.averaged(v.show); indexOf(kept, mean) < 0 {
					if v.average {
						v.show = mean
					} else {
						first.show = mean
					}
					v.sure = v.kind == score || placed && v.kind >= measure
					kept = append(kept, v)
				}
				continue
			}
			if first.owner == "" || v.owner == "" || first.owner == v.owner {
				continue
			}
			v.show = s.names.owned(v.owner, v.show)
			first.show, first.owner = s.names.owned(first.owner, first.show), ""
		} else if o := v.owner; o != "" && indexOf(kept, s.names.owned(o, v.show)) < 0 && ownedBefore(kept, v.show) {
			v.show = s.names.owned(o, v.show)
		}
		v.sure = v.kind == score || placed && v.kind >= measure || s.evaluates
		kept = append(kept, v)
	}
	return kept
}

// bestAlone reads "Best rmse score: 0.5" below a line that only counts. It has a name of its own, so that it is never
// taken for what is measured there.
func (s *scanner) bestAlone(i int) {
	start, end, number := remark.BestAlone(s.line, i)
	f, ok := lexis.Number(s.line, number)
	if !ok || end == 0 || !f.Real || !s.under && !s.below || len(s.found.counters) > 0 {
		return
	}
	name := s.line[start:end]
	if of, ok := strings.CutSuffix(name, " score"); ok && sense.Of(strings.ToLower(of)) >= weak { // "Best roc_auc_score score"
		name = of
	}
	v := value{term: s.names.term(name, ""), figure: f}
	if v.Start = -1; v.kind >= weak && v.show != "" { // another like it is so only where it stands, too
		v.best = v.show
		v.show = s.names.derived(v.best, "\x00best", func() string {
			at := strings.LastIndexByte(v.best, '/') + 1
			return v.best[:at] + "best_" + v.best[at:]
		})
		s.found.values = append(s.found.values, v)
		s.mark(v.show)
	}
}

// settingsWords say of the braces behind them that they hold what was set.
var settingsWords = set("parameters params hyperparameters hparams config args settings configuration setting")

// counts reports whether the line has said where the run is, in a unit.
func (s *scanner) counts(u unit) bool {
	for _, c := range s.found.counters {
		if c.unit == u {
			return true
		}
	}
	return false
}

// ofSplit reports whether a value is all that its line tells, and its name says of
// which data it is: "train/ce : 0.8123".
func (s *scanner) ofSplit(v value) bool {
	return v.Real && !v.blank && strings.IndexByte(v.show, '/') > 0 && Split(v.show) != "" && remark.IsAlone(s.line)
}

// ownedBefore reports whether a name was told apart by its owner already.
func ownedBefore(values []value, show string) bool {
	for _, v := range values {
		if v.owner == "" && strings.HasSuffix(v.show, "/"+show) && splits[v.show[:len(v.show)-len(show)-1]] == "" {
			return true
		}
	}
	return false
}

// several reports whether more than one value of a line is a loss.
func several(values []value, base string) bool {
	n := 0
	for _, v := range values {
		if strings.Contains(v.show, base) {
			n++
		}
	}
	return n > 1
}

// indexOf is where a line already has a value of a name: the first one counts.
func indexOf(values []value, show string) int {
	for i := range values {
		if values[i].show == show {
			return i
		}
	}
	return -1
}
