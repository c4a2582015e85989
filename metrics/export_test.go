package metrics

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// What a log service gives as one document has the lines that the training printed,
// in the order of their times.
func TestALogIsReadOutOfTheExportOfAService(t *testing.T) {
	plain := drawnOf(t, []byte(strings.Join(training, "\n")+"\n"))
	var events, rows []map[string]any
	var values [][2]string
	var journal strings.Builder
	for i, line := range training {
		events = append(events, map[string]any{"logStreamName": "train/1", "timestamp": 1741078800000 + i, "message": line, "ingestionTime": 1741078801000 + i, "eventId": fmt.Sprint(i)})
		rows = append(rows, map[string]any{"timestamp": 1741078800000 + i, "message": line + "\n"})
		values = append([][2]string{{fmt.Sprint(1741078800000000000 + i), line}}, values...) // newest first
		entry := map[string]any{"__CURSOR": fmt.Sprint(i), "_PID": "4", "PRIORITY": "6", "MESSAGE": line}
		if strings.ContainsAny(line, "\x1b\r") {
			var list []int
			for _, b := range []byte(line) {
				list = append(list, int(b))
			}
			entry["MESSAGE"] = list
		}
		text, _ := json.Marshal(entry)
		journal.Write(append(text, '\n'))
	}
	stream, _ := json.Marshal(values)
	loki := json.RawMessage(`{"status":"success","data":{"resultType":"streams","result":[{"stream":{"app":"train"},"values":` + string(stream) + `}]}}`)
	for name, document := range map[string]any{
		"filter-log-events": map[string]any{"events": events, "searchedLogStreams": []any{}},
		"get-log-events":    map[string]any{"events": events, "nextForwardToken": "f/1"},
		"Loki's query":      loki,
		"a list of records": rows,
	} {
		for _, indent := range []string{"", "    "} {
			text, _ := json.MarshalIndent(document, "", indent)
			if got := drawnOf(t, text); got != plain {
				t.Errorf("%s indented by %q: got\n%swant\n%s", name, indent, got, plain)
			}
			if _, err := Read(strings.NewReader(string(text[:len(text)/2])), nil, nil); err == nil {
				t.Errorf("half of %s is read without a word", name)
			}
		}
	}
	if got := drawnOf(t, []byte(journal.String())); got != plain {
		t.Errorf("journald with lists of bytes: got\n%swant\n%s", got, plain)
	}
}
