package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/workbench/event"
)

//go:generate sh -c "go run .. events > ../docs/events.md"

func timeNow() time.Time { return time.Now().UTC() }

// eventsCommand prints the reference of events; the page in docs is made by it.
func (a *app) eventsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "events", Short: "the reference of the events that --json prints", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.answer(eventDocs(), func(out io.Writer) {
				io.WriteString(out, event.EventReference()+printedReference("error", errorDoc, errorEvent{})+
					printedReference("waiting", waitingDoc, waitingEvent{})+exitReference())
			})
		},
	}
}

// eventDoc is the description of an event with --json.
type eventDoc struct {
	Event  string     `json:"event"`
	Text   string     `json:"text"`
	Fields []fieldDoc `json:"fields"`
}

type fieldDoc struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

type exitDoc struct {
	Code int    `json:"code"`
	Text string `json:"text"`
}

const errorDoc = "a command could not do its work; `failure` is as in `failed`, and `exit_code` is what dlwb exits with"

const waitingDoc = "nothing was said for 15 seconds: `for` what `on` has been waited for `since` when, and the `limit` in seconds after which " +
	"that is given up; `then` is what usually follows, and `more` how many other things are waited for. Any command may print it"

func eventDocs() eventsAnswer {
	var docs eventsAnswer
	add := func(name, text string, v any) {
		d := eventDoc{Event: name, Text: text, Fields: []fieldDoc{}}
		for _, f := range event.Fields(v) {
			d.Fields = append(d.Fields, fieldDoc{Name: f[0], Type: f[1]})
		}
		docs.Events = append(docs.Events, d)
	}
	for _, row := range event.Bodies {
		add(row.Body.EventName(), row.Doc, row.Body)
	}
	add("error", errorDoc, errorEvent{})
	add("waiting", waitingDoc, waitingEvent{})
	for _, e := range ExitCodes {
		docs.ExitCodes = append(docs.ExitCodes, exitDoc{Code: e.Code, Text: e.Doc})
	}
	return docs
}

// printedReference describes an event that is printed and never stored.
func printedReference(name, doc string, v any) string {
	s := "## " + name + "\n\n" + doc + ".\n\n| field | type |\n|---|---|\n"
	for _, f := range event.Fields(v)[2:] { // event and time are in all
		s += fmt.Sprintf("| `%s` | %s |\n", f[0], f[1])
	}
	return s + "\n"
}

func exitReference() string {
	s := "## Exit codes\n\n| code | meaning |\n|---|---|\n"
	for _, e := range ExitCodes {
		s += fmt.Sprintf("| %d | %s |\n", e.Code, e.Doc)
	}
	return s + "\n`demo`, `run` and `attach` exit with the run's own code: that of the rank that failed first\n" +
		"(128+n after signal n), 124 for a run that hung, 130 for one that was stopped.\n" +
		"In JSON the verdict tells these apart from dlwb's own codes.\n"
}
