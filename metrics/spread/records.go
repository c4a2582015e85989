package spread

import "strings"

// fewestRecords are the objects of lists that make records of them: one may be anything.
const fewestRecords = 2

// places are the members by which a record says where it is of.
var places = [...]string{"step", "epoch", "iteration", "global_step"}

// records are the objects in the lists of a dictionary that say each where the run was, as a report of a
// whole run has them beside its settings; nil where there are not several.
func records(text string) (all []string) {
	var open []int // where the brackets are that have not closed
	eachBracket(text, func(i int, opens bool) {
		if opens {
			open = append(open, i)
			return
		}
		if len(open) == 0 {
			return
		}
		start := open[len(open)-1]
		open = open[:len(open)-1]
		if text[i] == '}' && len(open) > 0 && text[open[len(open)-1]] == '[' && placed(text[start:i+1]) {
			all = append(all, text[start:i+1])
		}
	})
	if len(all) < fewestRecords {
		return nil
	}
	return all
}

// placed reports whether an object has a member that says where it is of.
func placed(object string) bool {
	for _, place := range places {
		if strings.Contains(object, `"`+place+`": `) || strings.Contains(object, `'`+place+`': `) {
			return true
		}
	}
	return false
}
