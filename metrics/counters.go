package metrics

import (
	"math"
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/sense"
)

// counter is one "step 20/300" of a line: where the run is, of how much.
type counter struct {
	unit     unit
	n, total float64
	global   bool // counts through the whole run
	inEpoch  bool // counts anew in each epoch
	again    bool // what restarts is at its end once more
	restarts bool // "batch 3/10", which begins anew when it has come to its end
	vague    bool // "steps: 10", which counts only beside a score

	numbered bool // "batch number = 3": no size of one
	bare     bool // no word says what it counts
	leads    bool // it is the first thing that its line says

	episodes bool // what it counts has steps itself
	outer    bool // another that its line counts with the same word may count in it

	first bool // in brackets, and nothing stands before it: "[batch=10/1000]:"

	at, totalAt int     // where the numbers stand
	times       float64 // by which the letter behind the number multiplies it; 0: there is none
}

type unit uint8

const (
	noUnit unit = iota
	unitEpoch
	unitStep
	unitBatch // counts steps only beside an epoch or a total: "batch: 32" is a setting
)

var unitWords = map[string]unit{
	"epoch": unitEpoch, "epochs": unitEpoch, "epoch_num": unitEpoch, "current_epoch": unitEpoch, "cur_epoch": unitEpoch, "ep.": unitEpoch, "ep": unitEpoch,
	"step": unitStep, "steps": unitStep, "timestep": unitStep, "iter": unitStep, "iters": unitStep, "itr": unitStep, "itrs": unitStep, "it": unitStep, "iter_num": unitStep, "episode_num": unitStep, "step_num": unitStep, "up.": unitStep,
	"iteration": unitStep, "iterations": unitStep, "update": unitStep, "updates": unitStep, "micro_step": unitBatch, "batch": unitBatch, "batch_id": unitBatch, "batch_idx": unitBatch,
	"轮": unitEpoch, "轮次": unitEpoch, "步": unitStep, "迭代": unitStep, "エポック": unitEpoch, "epoche": unitEpoch, "époque": unitEpoch, "época": unitEpoch, "эпоха": unitEpoch,
	"minibatch": unitBatch, "mini-batch": unitBatch, "batches": unitBatch, "minibatches": unitBatch, "mini-batches": unitBatch, "training_iteration": unitStep, "samples_count": unitStep, "round": unitStep, "rounds": unitStep, "episode": unitStep, "episodes": unitStep, "generation": unitStep, "evaluations": unitStep,
}

// globalWords count through the whole run, whatever else a line counts.
var globalWords = set(`global_step global_steps env_steps num_updates total_timesteps num_timesteps timesteps_total current_steps current_step
	global_iter global_batch global_iteration global_update total_steps_done samples_count consumed_train_samples training_iteration`)

// longestCounter is the length of the longest word that counts.
const longestCounter = len("consumed_train_samples")

// otherCounts are words before a counter that make it something else than where
// the run is: "best epoch 3", "warmup steps 100", "val step 1/20".
var otherCounts = set(`best max total num warmup per every each log save last of val valid validation eval test
	number min final start end for from until over this`)

// largestCount is where floating-point numbers stop counting.
const largestCount = lexis.LargestCount

// counter reads "epoch 1/3", "step: 20/300", "Epoch [1/3]", "iter=7", "Batch [0-20]".
func (s *scanner) counter(key string, sep byte, at int) (counter, int, bool) {
	u, plural := unitOf(key)
	opened := at < len(s.line) && s.line[at] == '['
	round := at < len(s.line) && s.line[at] == '(' && sep != ' ' // Batch: (10/200)
	if round {
		c, next, ok := ofTotal(s.line, lexis.SkipBlanks(s.line, at+1))
		if round = ok && c.total > 0 && next < len(s.line) && s.line[next] == ')'; round {
			at++
		}
	}
	joined := s.joined(key) // num timesteps 880
	if joined {
		u, plural = unitStep, false
	}
	if u == noUnit || sep == 0 && !opened && !round || otherCounts[s.before] && !joined && !(u == unitEpoch && (s.bounds() || s.ofEpoch(key) || s.endsEpoch(at)) || s.before == "for" && !plural && (u == unitEpoch || s.sticky != "" || s.ofOne(key))) && (u != unitEpoch && !isGlobal(key) || splits[s.before] == "") {
		return counter{}, 0, false
	}
	if opened {
		at = lexis.SkipBlanks(s.line, at+1)
	}
	before := at
	at = lexis.BehindNo(s.line, at)
	c, next, ok := ofTotal(s.line, at)
	c.numbered = at > before || sep == ' ' && ok && strings.HasPrefix(s.line[next:], ": ") // "batch 100: loss 0.5"
	c.unit = u
	c.episodes = strings.HasPrefix(key[1:], "pisode")
	c.global = joined || isGlobal(key)
	c.inEpoch, c.restarts = u == unitBatch, u == unitBatch && c.total > 0
	if c.vague = plural && c.total == 0 && !c.global && !(opened && sep == '-') && !s.behindEpoch(key, at) && !lexis.IsSeen(s.line[:at]); c.vague && (u != unitStep || s.phrase != lexis.SkipBlanks(s.line, s.phrase) || len(s.found.counters)+len(s.found.values) > 0 || sep != ':') {
		return counter{}, 0, false
	}
	if !ok || u != unitEpoch && (c.n != math.Trunc(c.n) || c.times == 0 && lexis.IsMeasured(s.line[c.at:next])) || lexis.HasUnit(s.line, next) && lexis.IsMeasured(s.line[c.at:next]) { // "time for 1 epoch: 29.04 secs"
		return counter{}, 0, false
	}
	if ok && c.total == 0 && u == unitStep && next+1 < len(s.line) && s.line[next] == '/' && lexis.IsDigit(s.line[next+1]) { // [12/8]: counts on over the epochs of 8
		c.global, next = true, lexis.Digits(s.line, next+1)
	}
	if opened && next+1 < len(s.line) && s.line[next] == '-' { // Batch [0-20]
		if end, ok := lexis.Number(s.line, next+1); ok {
			c.n, c.at, next = end.Value, end.Start, end.Next
		}
	}
	if opened && next < len(s.line) && s.line[next] == ']' || round {
		next++
	}
	return c, next, lexis.EndsCount(s.line, next)
}

// ofOne reports whether a metric is told of one of what counts: "Score for episode 3: 2.0".
func (s *scanner) ofOne(key string) bool {
	i := strings.Index(s.line, " for "+key)
	return i > s.from && sense.Of(strings.ToLower(s.line[strings.LastIndexByte(s.line[:i], ' ')+1:i])) >= weak
}

// behindEpoch reports whether nothing but a comma stands between an epoch and a
// key whose value is at i: "(epoch: 1, iters: 200, …".
func (s *scanner) behindEpoch(key string, i int) bool {
	f := s.found.counters
	if len(f) != 1 || f[0].unit != unitEpoch {
		return false
	}
	end := lexis.Digits(s.line, f[0].at)
	return strings.HasPrefix(s.line[end:i], ", "+key+":")
}

// bounds reports whether the line begins as "Start of epoch 3" or "Results of epoch 3" does.
func (s *scanner) bounds() bool {
	i := lexis.SkipBlanks(s.line, 0)
	if i < len(s.line) && s.line[i] == '|' {
		i = lexis.SkipBlanks(s.line, i+1)
	}
	first, _, _ := strings.Cut(strings.ToLower(s.line[i:]), " of ")
	return s.before == "of" && (strings.Contains(s.line, " at end of ") || strings.Contains(s.line, " at the end of ") || first == "start" || first == "end" || headingWords[first])
}

// loops marks the counter before one whose key begins at i where the two count with one word: "Outer iter: 3, inner
// iter: 20". It may be that of an outer loop.
func (s *scanner) loops(key string, inner counter, i int) {
	if len(s.found.counters) != 1 || len(s.found.values) > 0 || s.before == "" || inner.unit != unitStep || inner.global {
		return
	}
	outer := &s.found.counters[0]
	_, next, _ := ofTotal(s.line, outer.at)
	between := strings.TrimLeft(s.line[next:max(i, next)], " ,;|")
	word := strings.TrimRight(s.line[:outer.at], " :=")
	if outer.unit == unitStep && !outer.global && !outer.bare && lexis.IsWord(strings.TrimSpace(between)) && strings.EqualFold(lexis.WordBefore(word), key) && !strings.EqualFold(between+key, word[min(lexis.SkipBlanks(word, s.from), len(word)):]) {
		outer.outer = true
	}
}

// nests finds out whether the first of two counters is of an outer loop: it stays while the other goes up. The other counts
// anew in each turn of it then, as steps do in an epoch.
func (c *counters) nests(found []counter) {
	if len(found) != 2 || !found[0].outer {
		return
	}
	c.nested = c.nested || c.hasStep && found[0].n == c.loops[0] && found[1].n > c.loops[1]
	if c.loops = [2]float64{found[0].n, found[1].n}; c.nested {
		found[0].unit = unitEpoch
	}
}

// endsEpoch reports whether the line begins as "END epoch:3 train loss_avg: 0.5" does, whose number is at i. One without more
// is a setting, "End epoch: 50".
func (s *scanner) endsEpoch(i int) bool {
	if s.before != "end" || len(s.found.counters)+len(s.found.values) > 0 || !strings.EqualFold(s.line[lexis.SkipBlanks(s.line, s.from):][:len("end")], "end") {
		return false
	}
	end := lexis.Digits(s.line, min(i, len(s.line)))
	start, _ := lexis.NextKey(s.line, end)
	return end > i && start > end
}

// ofEpoch reports whether a number stands before an epoch that it is of, "it 2/10 of epoch 0": what was
// counted counts in the epoch.
func (s *scanner) ofEpoch(key string) bool {
	i := strings.Index(s.line, " of "+key)
	if i < 1 || !lexis.IsDigit(s.line[i-1]) {
		return false
	}
	for k := range s.found.counters {
		s.found.counters[k].inEpoch = true
	}
	return true
}

// maxSteps is behind the name of a counter that tells of how much, too:
// ms-swift's global_step/max_steps.
const maxSteps = "/max_steps"

// unitOf tells what a word counts. Of a plural it is not where the run is but
// how long it will be, unless it says both.
func unitOf(key string) (u unit, plural bool) {
	key = strings.TrimSuffix(key, maxSteps)
	if i := strings.LastIndexByte(key, '/'); i >= 0 { // trainer/global_step, but not loss/epoch
		if u, plural = unitOf(key[i+1:]); u != noUnit && sense.Of(strings.ToLower(key[:i])) >= weak {
			return noUnit, false
		}
		return u, plural
	}
	if len(key) > longestCounter || len(key) < 2 {
		return noUnit, false
	}
	if u, ok := unitWords[key]; ok {
		return u, key[len(key)-1] == 's'
	}
	key = strings.ToLower(key)
	if isGlobal(key) {
		return unitStep, false
	}
	return unitWords[key], strings.HasSuffix(key, "s")
}

// joined reports whether the word before a word makes it one that counts through the run: "num timesteps".
func (s *scanner) joined(key string) bool {
	return (strings.HasSuffix(key, "steps") || strings.HasSuffix(key, "step")) && (s.before == "num" || s.before == "total" || s.before == "global" || s.before == "env") && isGlobal(s.before+"_"+key)
}

// isPlural reports whether a word is for several of what counts.
func isPlural(word string) bool {
	u, plural := unitOf(word)
	return u != noUnit && plural
}

func isGlobal(key string) bool {
	key = strings.ToLower(key[strings.LastIndexByte(key, '/')+1:])
	return globalWords[key] || lexis.IsRunning(key)
}

// ofTotal reads "20/300", or "20" alone.
func ofTotal(line string, at int) (c counter, next int, ok bool) {
	n, next, ok := lexis.OfTotal(line, at)
	return counterOf(n, noUnit), next, ok
}

func counterOf(n lexis.Count, u unit) counter {
	return counter{unit: u, n: n.N, total: n.Total, at: n.At, totalAt: n.TotalAt, times: n.Times}
}

// within reads the steps in an epoch that stand after it: "Epoch: [0][ 10/100]",
// "Train Epoch: 1 [640/60000 (1%)]", "epoch 001:  10 / 40 ".
func (s *scanner) within(c counter, next int) int {
	at := lexis.SkipBlanks(s.line, next)
	if c.unit != unitEpoch || at >= len(s.line) {
		return next
	}
	if s.line[at] == ':' { // Epoch 1:	[2000/83000]
		if in := lexis.SkipBlanks(s.line, at+1); in < len(s.line) && s.line[in] == '[' {
			at = in
		}
	}
	opened, walled := s.line[at] == '[', s.line[at] == '|' || s.line[at] == ','
	if !opened && s.line[at] != ':' && !walled {
		return next
	}
	in, end, ok := ofTotal(s.line, lexis.SkipBlanks(s.line, at+1))
	if !ok || in.total == 0 || walled && !lexis.OfBatches(s.line, end) {
		return next
	}
	if opened {
		if end = lexis.CloseBracket(s.line, end); end == 0 {
			return next
		}
	}
	in.unit, in.inEpoch = unitStep, true
	if splits[s.before] == "" || splits[s.before] == "train" {
		s.found.counters = append(s.found.counters, in)
	}
	return end
}

// positions leaves of a line's counters those that say where the run is.
func positions(found []counter, scored, epochs bool) []counter {
	kept := found[:0]
	hasEpoch := false
	for _, c := range found {
		hasEpoch = hasEpoch || c.unit == unitEpoch
	}
	for _, c := range found {
		if (c.unit != unitBatch || hasEpoch || c.total > 0 || c.numbered || c.leads && epochs && scored) && (scored || !c.vague) {
			kept = append(kept, c)
		}
	}
	return kept
}

// lasting leaves of the counters of a line without values those that place the
// lines to come: "Parsing batch: 3/4" is about something else.
func lasting(found []counter) []counter {
	for _, c := range found {
		if c.unit == unitEpoch {
			return found
		}
	}
	kept := found[:0]
	for _, c := range found {
		if c.unit != unitBatch || c.first && c.total > 0 {
			kept = append(kept, c)
		}
	}
	return kept
}

// counters follows where a run is. Scripts count steps in two ways: through
// the whole run, or anew in each epoch; the second shows by falling back while
// the epoch goes on. Points get a step that counts through the run either way.
type counters struct {
	progress          Progress
	hasStep, hasEpoch bool

	raw, rawTotal int64   // the step as printed last
	stride        int64   // between the last two that were printed
	fromZero      bool    // the first step of an epoch is 0
	epochAt       float64 // the epoch in which the step was printed

	anew       bool    // each epoch counts anew
	firstEpoch float64 // of those that were seen
	base       int64   // steps of the epochs that are over
	perEpoch   int64
	late       int64 // steps of epochs that were over before a line told of the first, or that were longer than this one
	length     int64 // of an epoch, as its first line said

	loops  [2]float64 // the last two counters of one word
	nested bool       // the first of them is of an outer loop
}

// take goes on to where a line says that the run is, and returns by what its
// values are placed.
func (c *counters) take(found []counter) Axis {
	axis := AxisNone
	best := -1
	c.nests(found)
	for i, f := range found {
		if f.unit == unitEpoch && f.n == 1 && f.total == 1 && c.hasEpoch && c.progress.Epochs == 0 { // of a loop that counts itself
			axis = max(axis, AxisEpoch)
		} else if f.unit == unitEpoch {
			c.epoch(f.n, f.total)
			axis = max(axis, AxisEpoch)
		} else if best < 0 || found[best].episodes && !f.episodes && !f.inEpoch || c.hasStep && !f.inEpoch && int64(f.n) == c.raw && int64(found[best].n) != c.raw+max(c.stride, 1) || f.global && !found[best].global || found[best].inEpoch && !f.inEpoch && !found[best].global {
			best = i
		}
	}
	if best < 0 {
		return axis
	}
	f := found[best]
	switch n, total := int64(f.n), int64(f.total); {
	case f.bare && c.hasStep && c.raw == c.rawTotal && n < c.raw: // "[3] loss: 0.5" below a bar that came to its end
		if !c.hasEpoch {
			c.late = c.rawTotal
		}
		c.epoch(f.n, 0)
		return AxisEpoch
	case f.global:
		c.through(n, total)
	case f.inEpoch && c.hasEpoch && total > 0:
		if passed := math.Trunc(c.progress.Epoch - c.firstEpoch); !c.anew || c.epochAt != c.progress.Epoch {
			if c.anew && total != c.length { // batches that grow: fewer to an epoch
				c.late += int64(passed * float64(c.length-total))
			}
			c.length = total
		}
		c.anew, c.perEpoch, c.rawTotal = true, total, total
		if base := math.Trunc(c.progress.Epoch-c.firstEpoch)*float64(total) + float64(c.late); f.restarts && c.raw == total && n < c.raw && int64(base)+n <= c.progress.Step {
			c.late += total // epochs are told of when they are over
		}
		c.setBase(math.Trunc(c.progress.Epoch-c.firstEpoch)*float64(total) + float64(c.late))
		c.hasStep, c.raw, c.epochAt = true, n, c.progress.Epoch
		c.progress.Step, c.progress.Steps = c.base+n, c.steps(n)
	case f.restarts && c.hasStep && total == c.rawTotal && (c.raw == c.rawTotal && n < c.raw || f.again):
		c.anew, c.perEpoch = true, total
		c.base += total
		c.step(n, total)
	case c.anew && total == 0 && c.perEpoch > 0 && n > c.perEpoch && n == c.progress.Step: // the bar counts in the epoch, this line through the run
	default:
		c.step(n, total)
	}
	if f.inEpoch {
		return AxisInner
	}
	return AxisStep
}

// begins takes note of whether a line says no more than that an epoch begins, as
// "Epoch 1/3" above its bar does. What was validated behind it is at its end.
func (c *counters) begins(f found) {
	_, epoch := within(f.counters)
	switch {
	case epoch:
		c.progress.Begun = len(f.values) == 0 && len(f.counters) == 1 && c.firstEpoch >= 1
	case c.progress.Begun:
		for _, v := range f.values {
			if split, _, _ := strings.Cut(v.show, "/"); split == "val" || split == "eval" {
				c.progress.Begun = false
			}
		}
	}
}

// through is a step that is known to count through the whole run.
func (c *counters) through(n, total int64) {
	c.hasStep, c.raw, c.base, c.anew, c.epochAt = true, n, 0, false, c.progress.Epoch
	if total > 0 {
		c.rawTotal = total
		c.progress.Steps = total
	}
	c.progress.Step = n
}

func (c *counters) epoch(n, total float64) {
	if !c.hasEpoch {
		if c.hasEpoch, c.firstEpoch, c.epochAt = true, n, n; c.hasStep { // of the epoch before, or of this one that is over
			c.epochAt--
		}
	}
	c.firstEpoch = min(c.firstEpoch, n) // of two that count, one may count from 1
	c.progress.Epoch = n
	if total > 0 {
		c.progress.Epochs = total
	}
}

func (c *counters) step(n, total int64) {
	if !c.hasStep {
		c.fromZero = n == 0
	} else {
		c.follow(n, total)
	}
	if n > c.raw {
		c.stride = n - c.raw
	}
	c.hasStep, c.raw, c.epochAt = true, n, c.progress.Epoch
	if total > 0 {
		c.rawTotal = total
	}
	c.progress.Step = c.base + n
	c.progress.Steps = c.steps(n)
}

// follow looks whether a step begins a new epoch's count. A step that falls
// back within an epoch, and an epoch that does, are a resumed run: its points
// come again.
func (c *counters) follow(n, total int64) {
	passed := math.Trunc(c.progress.Epoch) - math.Trunc(c.epochAt)
	switch {
	case passed >= 1 && (n < c.raw || n == c.raw && (n == total || c.ahead(n, c.epochAt))):
		c.anew = true
		c.perEpoch = max(c.raw, c.rawTotal)
		if c.rawTotal == 0 && c.fromZero {
			c.perEpoch = c.raw + c.stride
		}
		c.setBase(float64(c.base) + passed*float64(c.perEpoch))
	case passed < 0 && c.anew:
		c.setBase(math.Trunc(c.progress.Epoch-c.firstEpoch) * float64(c.perEpoch))
	}
}

func (c *counters) setBase(steps float64) {
	c.base = int64(min(max(steps, 0), largestCount))
}

// steps is how many the run will have. Whether a printed total is that of the
// run or of an epoch shows, at the latest, when the count begins anew.
func (c *counters) steps(n int64) int64 {
	if !c.anew && !c.ahead(n, c.progress.Epoch) {
		return c.rawTotal
	}
	return int64(min(max(float64(c.rawTotal)*c.progress.Epochs, float64(c.rawTotal)*c.progress.Epoch+float64(c.late)), largestCount))
}

// ahead reports whether more steps are done than the epochs so far can hold,
// which gives away that steps are counted anew in each. Epochs may count from
// 0 or 1, and be a step longer than their share.
func (c *counters) ahead(n int64, epoch float64) bool {
	begun := epoch - min(c.firstEpoch, 1) + 1
	return c.progress.Epochs > 0 && c.rawTotal > 0 &&
		float64(n) > (float64(c.rawTotal)/c.progress.Epochs+1)*begun
}

// reports reports whether a line without values tells of an epoch before the
// present one, as another loop's does: "Epoch[1] Complete. Time taken: 0:01" of
// an evaluation. A line that begins an epoch anew says no more than which.
func (r *Reader) reports(rest string, counters []counter) bool {
	if len(counters) != 1 || counters[0].unit != unitEpoch || !r.counters.hasEpoch || counters[0].n >= r.counters.progress.Epoch {
		return false
	}
	behind := rest[max(lexis.Digits(rest, counters[0].at), lexis.Digits(rest, counters[0].totalAt)):]
	return strings.Trim(behind, " -=*#:]).") != ""
}
