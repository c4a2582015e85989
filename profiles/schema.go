package profiles

import (
	"encoding/json"
	"slices"
	"strings"
)

//go:generate go run ./gen

// JSONSchema is the schema of a profile (draft 2020-12), for editors. It is
// made from Fields.
func JSONSchema() []byte {
	root := groupSchema("")
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "dlwb profile"
	out, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic("the table of fields makes no JSON: " + err.Error()) // a fault of the table, seen by every test
	}
	return append(out, '\n')
}

// groupSchema is the schema of a key that holds other keys.
func groupSchema(group string) schema {
	properties, required := schema{}, []string{}
	for _, word := range keysOf[group] {
		key := join(group, word)
		properties[word] = keySchema(key)
		if f := fieldByKey[key]; f != nil && slices.Contains(f.RequiredFor, "*") {
			required = append(required, word)
		}
	}
	for _, f := range Fields { // a group with a required key is required itself
		if f.RequiredFor != nil && f.RequiredFor[0] == "*" && group == "" {
			required = append(required, parent(f.Key))
		}
	}
	s := schema{"type": "object", "description": plain(groupByKey[group].Doc), "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func keySchema(key string) schema {
	f := fieldByKey[key]
	switch {
	case f == nil:
		return groupSchema(key)
	case isGroup(key):
		return schema{"description": plain(f.Doc), "oneOf": []any{f.Type.Schema(f), groupSchema(key)}}
	}
	s := f.Type.Schema(f)
	s["description"] = describe(f)
	if f.Default != "" {
		s["default"] = defaultValue(f, s)
	}
	return s
}

// defaultValue is the default with the JSON type that the schema asks for.
func defaultValue(f *Field, s schema) any {
	if s["type"] == "boolean" || s["type"] == "integer" {
		return json.RawMessage(f.Default)
	}
	return f.Default
}

func describe(f *Field) string {
	text := plain(f.Doc)
	if f.Providers != nil {
		text += " Only for " + strings.Join(f.Providers, ", ") + "."
	}
	return text
}

func plain(doc string) string { return strings.ReplaceAll(doc, "`", "") }
