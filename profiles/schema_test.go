package profiles

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// fits is as much of JSON schema as the profile's uses; it says what does not fit.
func fits(s map[string]any, v any, at string) string {
	for word, arg := range s {
		switch word {
		case "description", "default", "title", "$schema", "properties", "additionalProperties", "propertyNames":
		case "type":
			if types, many := arg.([]any); many && !slices.ContainsFunc(types, func(x any) bool { return jsonType(x.(string), v) }) ||
				!many && !jsonType(arg.(string), v) {
				return fmt.Sprintf("%s: %v is no %v", at, v, arg)
			}
		case "enum":
			if !slices.Contains(arg.([]any), v) {
				return fmt.Sprintf("%s: %v is not one of %v", at, v, arg)
			}
		case "const":
			if v != arg {
				return fmt.Sprintf("%s: %v is not %v", at, v, arg)
			}
		case "pattern":
			if text, ok := v.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(text) {
				return fmt.Sprintf("%s: %q does not match %s", at, text, arg)
			}
		case "oneOf":
			n := 0
			for _, one := range arg.([]any) {
				if fits(one.(map[string]any), v, at) == "" {
					n++
				}
			}
			if n != 1 {
				return fmt.Sprintf("%s: %v fits %d of the forms", at, v, n)
			}
		case "items":
			for i, x := range asList(v) {
				if bad := fits(arg.(map[string]any), x, fmt.Sprintf("%s[%d]", at, i)); bad != "" {
					return bad
				}
			}
		case "required":
			for _, key := range arg.([]any) {
				if m, ok := v.(map[string]any); ok && m[key.(string)] == nil {
					return at + ": " + key.(string) + " is missing"
				}
			}
		case "minimum", "maximum", "exclusiveMinimum", "minItems", "uniqueItems", "minLength", "maxLength", "maxProperties":
			if bad := bounds(word, arg, v); bad != "" {
				return at + ": " + bad
			}
		default:
			return "the test does not know " + word
		}
	}
	m, _ := v.(map[string]any)
	return fitsKeys(s, m, at)
}

func fitsKeys(s, m map[string]any, at string) string {
	properties, _ := s["properties"].(map[string]any)
	for key, x := range m {
		sub, known := properties[key].(map[string]any)
		if extra, ok := s["additionalProperties"].(map[string]any); !known && ok {
			sub, known = extra, true
		}
		if !known && s["additionalProperties"] == false {
			return at + ": unknown key " + key
		}
		if bad := fits(sub, x, path.Join(at, key)); bad != "" {
			return bad
		}
		if names, ok := s["propertyNames"].(map[string]any); ok {
			if bad := fits(names, key, at); bad != "" {
				return bad
			}
		}
	}
	return ""
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func bounds(word string, arg, v any) string {
	limit, _ := arg.(float64)
	number, isNumber := v.(float64)
	text, isText := v.(string)
	m, isMap := v.(map[string]any)
	list := asList(v)
	ok := true
	switch word {
	case "minimum":
		ok = !isNumber || number >= limit
	case "maximum":
		ok = !isNumber || number <= limit
	case "exclusiveMinimum":
		ok = !isNumber || number > limit
	case "minLength":
		ok = !isText || len(text) >= int(limit)
	case "maxLength":
		ok = !isText || len(text) <= int(limit)
	case "maxProperties":
		ok = !isMap || len(m) <= int(limit)
	case "minItems":
		ok = list == nil || len(list) >= int(limit)
	case "uniqueItems":
		for i, x := range list {
			ok = ok && !slices.ContainsFunc(list[:i], func(y any) bool { return reflect.DeepEqual(x, y) })
		}
	}
	if ok {
		return ""
	}
	return fmt.Sprintf("%v breaks %s %v", v, word, arg)
}

func jsonType(name string, v any) bool {
	switch x := v.(type) {
	case map[string]any:
		return name == "object"
	case []any:
		return name == "array"
	case string:
		return name == "string"
	case bool:
		return name == "boolean"
	case float64:
		return name == "number" || name == "integer" && x == math.Trunc(x)
	}
	return false
}

func asJSON(t testing.TB, text []byte) (v any) {
	t.Helper()
	var tree any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(tree)
	if err == nil {
		err = json.Unmarshal(out, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTheSchemaAcceptsWhatTheParserAccepts(t *testing.T) {
	var s map[string]any
	if err := json.Unmarshal(JSONSchema(), &s); err != nil {
		t.Fatal(err)
	}
	for name, text := range goodTexts(t) {
		if bad := fits(s, asJSON(t, text), "profile"); bad != "" {
			t.Errorf("%s: %s", name, bad)
		}
	}
}

func TestTheSchemaRefusesWhatItCanSee(t *testing.T) {
	var s map[string]any
	if err := json.Unmarshal(JSONSchema(), &s); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"unknown-key", "unknown-top-key", "no-command", "run-without-command", "unknown-provider", "unknown-engine",
		"bad-name", "bad-counts", "count-zero", "bad-sizes", "bad-size-unit", "bad-durations", "bad-money", "bad-switch", "bad-instance", "bad-hosts",
		"environment-word", "unknown-environment-key", "paths-not-a-list", "bad-forwards", "command-is-a-list", "run-is-a-word", "many-at-once"} {
		text, err := os.ReadFile("testdata/broken/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		if fits(s, asJSON(t, text), "profile") == "" {
			t.Errorf("%s fits the schema", name)
		}
	}
}
