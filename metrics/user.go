package metrics

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/metrics/lexis"
	"github.com/dlwb/dlwb/metrics/recipe"
)

// UserMetric is a name and a regular expression (RE2), from the profile: for
// what is not found by itself. It goes before what is. The value is the group
// called value, or the first; a group called step or epoch says where.
type UserMetric struct{ Name, Regex string }

// ParseUserMetric reads SageMaker's "name: regex".
func ParseUserMetric(text string) (UserMetric, error) {
	name, re, ok := strings.Cut(text, ": ")
	if !ok {
		name, re, ok = strings.Cut(text, "=")
	}
	name, re = strings.TrimSpace(name), strings.TrimSpace(re)
	if !ok || name == "" || re == "" {
		return UserMetric{}, fmt.Errorf("%q is not of the form \"name: regular expression\", such as 'val/acc: top-1 (\\d+\\.\\d+)'", text)
	}
	u := UserMetric{name, re}
	return u, u.Check()
}

// Check says what is wrong with an expression.
func (u UserMetric) Check() error {
	re, err := regexp.Compile(u.Regex)
	if err != nil {
		return fmt.Errorf("the expression of %s: %w", u.Name, err)
	}
	if re.NumSubexp() < 1 {
		return fmt.Errorf("the expression of %s has no group for the value: put parentheses around the number", u.Name)
	}
	return nil
}

type userMetric struct {
	name               string
	re                 *regexp.Regexp
	literal            string // stands in every line that matches
	value, step, epoch int    // groups
}

type userMetrics []userMetric

func compile(user []UserMetric) userMetrics {
	var all userMetrics
	for _, u := range user {
		if u.Check() != nil {
			continue
		}
		re := regexp.MustCompile(u.Regex)
		m := userMetric{name: u.Name, re: re, literal: recipe.Literal(u.Regex), value: 1, step: re.SubexpIndex("step"), epoch: re.SubexpIndex("epoch")}
		if i := re.SubexpIndex("value"); i > 0 {
			m.value = i
		}
		all = append(all, m)
	}
	return all
}

// readUser reads a line by the user's expressions.
func (r *Reader) readUser(line string) {
	for i := range r.user {
		u := &r.user[i]
		if !strings.Contains(line, u.literal) {
			continue
		}
		m := u.re.FindStringSubmatchIndex(line)
		if m == nil || m[2*u.value] < 0 {
			continue
		}
		v, ok := lexis.Stated(line[m[2*u.value]:m[2*u.value+1]])
		if !ok {
			continue
		}
		hit := userHit{name: u.name, value: v}
		if n, ok := lexis.Group(line, m, u.step); ok && n >= 0 && n <= largestCount {
			hit.step = new(int64(n))
		} else if n, ok := lexis.Group(line, m, u.epoch); ok && n >= 0 {
			hit.epoch = &n
		}
		r.taken = append(r.taken, len(line)-m[2*u.value+1])
		r.hits = append(r.hits, hit)
	}
}

// userHit is what an expression found in a line, before it is known where the
// line says that the run is.
type userHit struct {
	name  string
	value float64
	step  *int64
	epoch *float64
}

// addHits adds what the user's expressions found.
func (r *Reader) addHits() {
	for _, h := range r.hits {
		p := r.point(h.name, h.value)
		if h.step != nil {
			p.Step, p.X = h.step, AxisStep
		} else if h.epoch != nil {
			p.Epoch, p.X = h.epoch, AxisEpoch
		}
		r.rule = "your expression for " + h.name
		r.emit(r.series[h.name], p)
	}
	r.hits = r.hits[:0]
}

// untaken leaves the values whose numbers no expression of the user took.
func (r *Reader) untaken(values []value, length int) []value {
	kept := values[:0]
	for _, v := range values {
		if !slices.Contains(r.taken, length-v.Next) {
			kept = append(kept, v)
		}
	}
	return kept
}
