package cloud

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWhatWasNotCheckedIsNeitherFineNorAProblem(t *testing.T) {
	for _, c := range []struct {
		f           Finding
		mark, state string
	}{
		{Finding{OK: true, What: "disk"}, "✓", "ok"},
		{Finding{What: "disk"}, "✗", "problem"},
		{Warning("GPU", "no GPU", ""), "!", "warning"},
		{Unchecked("quota", "AWS did not answer", ""), "?", "unknown"},
		{Finding{OK: false, State: NotChecked}, "✗", "problem"},
	} {
		b, err := json.Marshal([]Finding{c.f})
		if err != nil || c.f.Mark() != c.mark || !strings.Contains(string(b), `"state":"`+c.state+`"`) {
			t.Errorf("%+v: mark %s, JSON %s, %v; want %s and %s", c.f, c.f.Mark(), b, err, c.mark, c.state)
		}
	}
}
