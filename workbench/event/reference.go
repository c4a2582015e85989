package event

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// EventReference is the reference page of the events, made from their types.
func EventReference() string {
	var b strings.Builder
	b.WriteString("# Events\n\nEvery headless command that takes time prints events; with `--json` one JSON object a line.\n" +
		"Each has `event`, `time` and, where they apply, `seq`, `cluster` and `run`; then the fields below.\n\n")
	for _, row := range Bodies {
		fmt.Fprintf(&b, "## %s\n\n%s.\n\n", row.Body.EventName(), row.Doc)
		fields := fieldsOf(reflect.TypeOf(row.Body))
		if len(fields) == 0 {
			continue
		}
		b.WriteString("| field | type |\n|---|---|\n")
		for _, f := range fields {
			fmt.Fprintf(&b, "| `%s` | %s |\n", f[0], f[1])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// Fields lists the JSON fields of a struct, each with its type in words, for
// the reference pages.
func Fields(v any) [][2]string { return fieldsOf(reflect.TypeOf(v)) }

// fieldsOf lists the JSON fields of a struct with their types, those of
// embedded structs among them.
func fieldsOf(t reflect.Type) [][2]string {
	var fields [][2]string
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.IsExported() && !f.Anonymous {
			continue // encoding/json leaves it out, too
		}
		if f.Anonymous {
			fields = append(fields, fieldsOf(f.Type)...)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		if name != "-" {
			fields = append(fields, [2]string{name, typeName(f.Type)})
		}
	}
	return fields
}

func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t.Kind() == reflect.Pointer:
		return typeName(t.Elem()) + " or null"
	case t.Kind() == reflect.Slice:
		return "list of " + typeName(t.Elem())
	case t.Kind() == reflect.Struct:
		var names []string
		for _, f := range fieldsOf(t) {
			names = append(names, f[0])
		}
		return "object: " + strings.Join(names, ", ")
	case t.Kind() == reflect.Float64, t.Kind() == reflect.Int, t.Kind() == reflect.Int64:
		return "number"
	case t.Kind() == reflect.Bool:
		return "true or false"
	}
	return "text"
}
