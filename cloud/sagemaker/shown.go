package sagemaker

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sagemaker"
)

// shown is a call as JSON, as it goes over the wire: what is not set is left out.
func shown(in *sagemaker.CreateTrainingJobInput) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(bare(reflect.ValueOf(in)))
	return strings.TrimSpace(b.String())
}

// bare is a value without what is not set; nil: nothing of it is.
func bare(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return bare(v.Elem())
	case reflect.Struct:
		all := map[string]any{}
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				if value := bare(v.Field(i)); value != nil {
					all[f.Name] = value
				}
			}
		}
		return all
	case reflect.Slice, reflect.Map:
		return list(v)
	case reflect.String:
		if v.String() == "" {
			return nil
		}
		return v.String()
	case reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Bool:
		return v.Bool()
	}
	return nil
}

// list is a slice or a map; nil: it is empty.
func list(v reflect.Value) any {
	if v.Len() == 0 {
		return nil
	}
	if v.Kind() == reflect.Map {
		all := map[string]any{}
		for _, key := range v.MapKeys() {
			all[key.String()] = v.MapIndex(key).String() // an empty value counts
		}
		return all
	}
	var all []any
	for i := range v.Len() {
		if v.Index(i).Kind() == reflect.String { // an empty word counts
			all = append(all, v.Index(i).String())
			continue
		}
		all = append(all, bare(v.Index(i)))
	}
	return all
}
