package metrics

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/dlwb/dlwb/metrics/braces"
	"github.com/dlwb/dlwb/metrics/csvhead"
	"github.com/dlwb/dlwb/metrics/envelope"
	"github.com/dlwb/dlwb/metrics/export"
	"github.com/dlwb/dlwb/metrics/mlflow"
	"github.com/dlwb/dlwb/metrics/smi"
	"github.com/dlwb/dlwb/metrics/tfevent"
	"github.com/dlwb/dlwb/metrics/unpack"
	"github.com/dlwb/dlwb/metrics/wandb"
)

// Format is what a file holds.
type Format string

// The formats that are read.
const (
	Log          Format = "log" // what a training printed
	EventFile    Format = "tfevents"
	CSV          Format = "csv"
	JSONLines    Format = "jsonl"
	JSON         Format = "json" // one value: a list of rows, or lists by name
	TrainerState Format = "trainer_state"
	NvidiaSMI    Format = "nvidia-smi"
	MLflow       Format = "mlflow" // one metric of its file store
	WandB        Format = "wandb"  // run-ID.wandb, which W&B keeps beside the training
)

// Document is what a file says.
type Document struct {
	Format   Format
	Set      Set
	Progress Progress
	SMI      smi.Answer      // of an answer of nvidia-smi
	Faults   []tfevent.Fault // of an event file, or of W&B's
	Evidence []Evidence      // of a log: what speaks for its series, and what waits
}

// sniffed is how much of a file is looked at to tell what it is.
const sniffed = unpack.Peeked

// mostSMI bounds an answer of nvidia-smi; a saved stream of a day fits.
const mostSMI = 64 << 20

// mostState bounds the state of a trainer.
const mostState = 512 << 20

// Read reads a file of any of the formats. user are expressions that go before
// what is found in a log; told, if not nil, hears what each of its lines gave.
func Read(r io.Reader, user []UserMetric, told func(Reading)) (*Document, error) {
	in, err := unpack.Open(r)
	if err != nil {
		return nil, err
	}
	start, err := in.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	book() // what is in it is of files, too
	if export.Is(start) {
		d := &Document{Format: Log}
		return d, d.exported(in, user, told)
	}
	d := &Document{Format: Sniff(start)}
	switch d.Format {
	case EventFile:
		d.Faults, err = ReadEvents(in, d.Set.Add)
	case CSV:
		err = ReadCSV(in, d.Set.Add)
	case JSONLines:
		err = ReadJSONLines(in, d.Set.Add)
	case JSON:
		err = ReadJSON(in, d.Set.Add)
	case WandB:
		d.Faults, err = ReadWandB(in, d.Set.Add)
	case MLflow:
		err = ReadMLflow(in, d.Set.Add)
	case TrainerState:
		d.Progress, err = ReadTrainerState(io.LimitReader(in, mostState), d.Set.Add)
	case NvidiaSMI:
		var text []byte
		text, err = io.ReadAll(io.LimitReader(in, mostSMI))
		d.SMI, _ = smi.Read(text)
	default:
		err = d.log(in, user, told)
	}
	return d, err
}

// exported reads what a training printed out of the document of a log service.
func (d *Document) exported(in io.Reader, user []UserMetric, told func(Reading)) error {
	reader := NewReader(user)
	reader.Explain(told)
	err := export.Lines(in, func(line string) {
		d.Set.Add(reader.Feed([]byte(line), time.Time{})...)
	})
	d.ends(reader)
	return err
}

// ends takes what a reader says when nothing more comes.
func (d *Document) ends(reader *Reader) {
	d.Set.Add(reader.End(time.Time{})...)
	d.Progress, d.Evidence = reader.Progress(), reader.Evidence()
}

// log reads what a training printed.
func (d *Document) log(in io.Reader, user []UserMetric, told func(Reading)) error {
	reader := NewReader(user)
	reader.Explain(told)
	buffer := make([]byte, 256<<10)
	for {
		n, err := in.Read(buffer)
		d.Set.Add(reader.Feed(buffer[:n], time.Time{})...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	d.ends(reader)
	return nil
}

// Sniff tells from its beginning what a file holds.
func Sniff(start []byte) Format {
	if tfevent.Is(start) {
		return EventFile
	}
	if wandb.Is(start) {
		return WandB
	}
	text := bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\xef\xbb\xbf")), " \t\r\n")
	if smi.Is(text, len(start) < sniffed) {
		return NvidiaSMI
	}
	if isJSON(text) {
		return JSON
	}
	if len(text) > 0 && text[0] == '{' {
		if bytes.Contains(text, []byte(`"log_history"`)) {
			return TrainerState
		}
		first, rest, _ := bytes.Cut(text, []byte{'\n'})
		_, ok := braces.Read(strings.TrimSpace(string(first)), nil)
		rest = bytes.TrimLeft(rest, " \r\n")
		if _, _, packed := envelope.Unwrap(strings.TrimSpace(string(first))); packed {
			return Log
		}
		if ok && bytes.IndexByte(first, '"') > 0 && (len(rest) == 0 || rest[0] == '{') {
			return JSONLines
		}
	}
	if first, _, _ := bytes.Cut(text, []byte{'\n'}); mlflow.IsLine(string(first)) {
		return MLflow
	}
	if csvhead.Is(text) {
		return CSV
	}
	return Log
}

// isJSON reports whether a text begins as a list of objects, or as lists of numbers by
// name.
func isJSON(text []byte) bool {
	if len(text) > 1 && text[0] == '[' {
		inside := bytes.TrimLeft(text[1:], " \t\r\n")
		return len(inside) > 1 && inside[0] == '{' && bytes.IndexByte(inside[:min(len(inside), 200)], '"') > 0
	}
	if len(text) == 0 || text[0] != '{' || bytes.Contains(text, []byte("\n{")) || bytes.Contains(text, []byte(`"log_history"`)) {
		return false
	}
	return braces.BeginsWithList(strings.Join(strings.Fields(string(text[:min(len(text), 400)])), " "))
}
