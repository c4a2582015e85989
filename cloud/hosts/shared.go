package hosts

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/internal/hostclaim"
)

// Hosts of a laboratory often have one home directory, on a file system that all of
// them mount. What is on it belongs to all: it is made once, by the first of them,
// and goes with the last. Which hosts share what is found by trying, when they are
// taken.

// meeting is a word for the hosts that are taken together; empty: there is only one.
func meeting(hosts int) string {
	if hosts < 2 {
		return ""
	}
	return strings.ToLower(rand.Text()[:16])
}

// recallShared puts into the machines what was found out of them before, and reports
// whether it was.
func recallShared(contacts []*contact, before []machine) bool {
	if len(before) != len(contacts) {
		return false
	}
	met := true
	for i, c := range contacts {
		c.HomeOf, c.CodeOf, c.Met = before[i].HomeOf, before[i].CodeOf, before[i].Met
		met = met && c.Met
	}
	return met
}

// findShared asks every host whose marks it sees, and puts into the machines what they
// share with an earlier one. All of them have left their marks.
func findShared(ctx context.Context, life cloud.Life, contacts []*contact, word string) error {
	if word == "" {
		return nil
	}
	answers, errs := make([]hostclaim.Answer, len(contacts)), make([]error, len(contacts))
	var all sync.WaitGroup
	for i, c := range contacts {
		all.Go(func() {
			r := lifeRequest(hostclaim.Seek, life)
			r.Meeting, r.Number, r.Among = word, i, len(contacts)
			if answers[i], errs[i] = c.ask(ctx, r, c.bounds.Script); errs[i] != nil {
				errs[i] = &Problem{Host: c.Alias, Why: "whether it shares its home with another host can't be found out: " + errs[i].Error(), Next: c.login() + " ls -la .dlwb"}
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	homes, codes := make([][]int, len(contacts)), make([][]int, len(contacts))
	for i, a := range answers {
		homes[i], codes[i] = a.Homes, a.Codes
	}
	home, code := firsts(homes), firsts(codes)
	for i, c := range contacts {
		c.HomeOf, c.CodeOf, c.Met = earlier(home[i], i), earlier(code[i], i), true
	}
	return nil
}

// earlier is the first machine of a group as the record has it, and first the way
// back.
func earlier(first, i int) int {
	if first == i {
		return 0
	}
	return first + 1
}

func first(earlier, i int) int {
	if earlier == 0 {
		return i
	}
	return earlier - 1
}

// firsts gives for each host the first one that has the same directory: its own number
// where that is itself. Who is seen by one of two shares with both, in either
// direction.
func firsts(seen [][]int) []int {
	first := make([]int, len(seen))
	for i := range first {
		first[i] = i
	}
	for changed := true; changed; {
		changed = false
		for i, others := range seen {
			for _, j := range others {
				if j < 0 || j >= len(seen) || first[i] == first[j] {
					continue
				}
				low := min(first[i], first[j])
				first[i], first[j], changed = low, low, true
			}
		}
	}
	return first
}

// firstName is the name of the first node of a group; empty where that is the node
// itself.
func firstName(earlier int) string {
	if earlier == 0 {
		return ""
	}
	return "node" + itoa(earlier-1)
}

// together are the numbers of the machines that have something in common, each group
// in order: these are given back together.
func together(machines []machine) (groups [][]int) {
	seen := make([][]int, len(machines))
	for i, m := range machines {
		seen[i] = []int{first(m.HomeOf, i), first(m.CodeOf, i)}
	}
	at := map[int]int{}
	for i, lead := range firsts(seen) {
		if _, known := at[lead]; !known {
			at[lead] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[lead]] = append(groups[at[lead]], i)
	}
	return groups
}

// sharesCode reports whether another machine has the same place for the code.
func sharesCode(machines []machine, i int) bool {
	for j, m := range machines {
		if j != i && first(m.CodeOf, j) == first(machines[i].CodeOf, i) {
			return true
		}
	}
	return false
}

// sharedNotice tells which hosts share what; empty: none do.
func sharedNotice(machines []machine) string {
	var said []string
	for _, what := range []struct {
		name string
		of   func(machine) int
	}{{"one home directory", func(m machine) int { return m.HomeOf }}, {"one place for the code", func(m machine) int { return m.CodeOf }}} {
		groups := map[int][]string{}
		for i, m := range machines {
			at := first(what.of(m), i)
			groups[at] = append(groups[at], m.Entry)
		}
		for i := range machines {
			if names := groups[i]; len(names) > 1 {
				text := fmt.Sprintf("%s share %s", someNames(names), what.name)
				if !slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, someNames(names)+" ") }) {
					said = append(said, text)
				}
			}
		}
	}
	if len(said) == 0 {
		return ""
	}
	return strings.Join(said, "; ") + ": code and environment come there once"
}

// someNames are names in a sentence, the first few.
func someNames(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
