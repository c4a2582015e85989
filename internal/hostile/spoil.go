package hostile

import (
	"reflect"
	"slices"
	"time"
)

// Spoil returns a copy of v in which every text, however deep, ends with what
// text gives. Texts of types of their own (states, verdicts) are words of the
// program and stay; so do fields of the names to keep, by which things find each
// other. Lists and maps that are empty get one entry.
func Spoil[T any](v T, text func() string, keep ...string) T {
	s := spoiler{text, keep}
	out := reflect.New(reflect.TypeFor[T]()).Elem()
	out.Set(reflect.ValueOf(&v).Elem())
	return s.copy(out, 0).Interface().(T)
}

type spoiler struct {
	text func() string
	keep []string
}

// deepest is how far values are followed: types may hold themselves.
const deepest = 12

func (s spoiler) copy(v reflect.Value, depth int) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	out.Set(v)
	if depth > deepest || v.Type() == reflect.TypeFor[time.Time]() {
		return out
	}
	switch v.Kind() {
	case reflect.String:
		if v.Type() == reflect.TypeFor[string]() {
			out.SetString(v.String() + s.text())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !slices.Contains(s.keep, f.Name) {
				out.Field(i).Set(s.copy(v.Field(i), depth+1))
			}
		}
	case reflect.Slice, reflect.Map:
		s.many(v, out, depth)
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(s.copy(v.Elem(), depth+1))
		}
	case reflect.Interface:
		if !v.IsNil() {
			out.Set(s.copy(v.Elem(), depth+1))
		}
	}
	return out
}

func (s spoiler) many(v, out reflect.Value, depth int) {
	text := v.Type().Elem() == reflect.TypeFor[string]()
	switch {
	case v.Kind() == reflect.Slice && v.Len() > 0:
		out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
		for i := range v.Len() {
			out.Index(i).Set(s.copy(v.Index(i), depth+1))
		}
	case v.Kind() == reflect.Slice && text:
		out.Set(reflect.ValueOf([]string{s.text()}).Convert(v.Type()))
	case v.Kind() == reflect.Map && !v.IsNil():
		out.Set(reflect.MakeMap(v.Type()))
		for _, key := range v.MapKeys() {
			out.SetMapIndex(s.copy(key, depth+1), s.copy(v.MapIndex(key), depth+1))
		}
	}
}
