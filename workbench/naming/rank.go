package naming

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/workbench/event"
)

// AllRanks is the number that Rank gives for "all".
const AllRanks = -1 << 31

// Rank turns what a person typed for a rank of a run into the number of its log: a
// number, "all", or "launcher-N". An error says which ranks the run has.
func Rank(word string, run event.RunInfo) (int, error) {
	if word == "all" {
		return AllRanks, nil
	}
	if digits, ok := strings.CutPrefix(word, "launcher-"); ok {
		if node, err := strconv.Atoi(digits); err == nil && node >= 0 {
			return event.LauncherLog(node), nil
		}
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < 0 || n >= run.WorldSize {
		ranks := "only rank 0"
		if run.WorldSize > 1 {
			ranks = fmt.Sprintf("ranks 0 to %d", run.WorldSize-1)
		}
		return 0, fmt.Errorf("--rank %s: run %s has %s; also all and launcher-N", word, run.ID, ranks)
	}
	return n, nil
}
