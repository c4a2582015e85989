package wire

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Form makes a form of a JSON object: lists as Name.1, Name.2.
func Form(body []byte) (url.Values, error) {
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		return nil, err
	}
	v := url.Values{}
	flatten(v, "", object)
	return v, nil
}

func flatten(v url.Values, name string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for k, m := range value {
			flatten(v, strings.TrimPrefix(name+"."+k, "."), m)
		}
	case []any:
		for i, m := range value {
			flatten(v, name+"."+strconv.Itoa(i+1), m)
		}
	case float64:
		v.Set(name, strconv.FormatFloat(value, 'f', -1, 64))
	case nil:
	default:
		v.Set(name, fmt.Sprint(value))
	}
}
