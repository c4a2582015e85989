package fakeaws

import (
	"encoding/base64"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// request is a call being answered.
type request struct {
	params
	s      *Server
	call   Call
	region *region
	json   bool
}

// action answers one kind of call; the server's lock is held. An error is a
// *failure and undoes what was done.
type action func(*request) (any, error)

// params are parameters in the order of EC2's query protocol: lists are
// Name.1, Name.2; members of structures Name.Member.
type params struct {
	form   url.Values
	prefix string
}

func (p params) str(name string) string { return p.form.Get(p.prefix + name) }
func (p params) is(name string) bool    { return p.str(name) == "true" }
func (p params) has(name string) bool   { return p.form.Has(p.prefix + name) }

func (p params) num(name string, otherwise int) int {
	if n, err := strconv.Atoi(p.str(name)); err == nil {
		return n
	}
	return otherwise
}

// flag is a boolean with a default.
func (p params) flag(name string, otherwise bool) bool {
	if p.has(name) {
		return p.is(name)
	}
	return otherwise
}

// list are the values Name.1, Name.2, …
func (p params) list(name string) []string {
	var out []string
	for i := 1; p.has(name + "." + strconv.Itoa(i)); i++ {
		out = append(out, p.str(name+"."+strconv.Itoa(i)))
	}
	return out
}

// each are the structures Name.1, Name.2, …
func (p params) each(name string) []params {
	var out []params
	for i := 1; ; i++ {
		sub := p.sub(name + "." + strconv.Itoa(i))
		if !sub.any() {
			return out
		}
		out = append(out, sub)
	}
}

func (p params) sub(name string) params { return params{p.form, p.prefix + name + "."} }

// any reports whether there is any parameter here.
func (p params) any() bool {
	for k := range p.form {
		if strings.HasPrefix(k, p.prefix) {
			return true
		}
	}
	return false
}

// tagsFor are the tags that a creating call gives to what it makes.
func (q *request) tagsFor(kind string) (tags, error) {
	t := tags{}
	for _, spec := range q.each("TagSpecification") {
		if spec.str("ResourceType") != kind {
			continue
		}
		more, err := readTags(spec)
		if err != nil {
			return nil, err
		}
		t = t.with(more)
	}
	return t, nil
}

// onlyTags refuses tags for kinds that the call does not make.
func (q *request) onlyTags(kinds ...string) error {
	for _, spec := range q.each("TagSpecification") {
		if kind := spec.str("ResourceType"); !slices.Contains(kinds, kind) {
			return bad("InvalidParameterValue", "'%s' is not a valid taggable resource type for this operation.", kind)
		}
	}
	return nil
}

const mostTags = 50

func readTags(p params) (tags, error) {
	t := tags{}
	for _, tag := range p.each("Tag") {
		k := tag.str("Key")
		switch _, twice := t[k]; {
		case twice:
			return nil, bad("InvalidParameterValue", "Duplicate tag key '%s' specified.", k)
		case strings.HasPrefix(strings.ToLower(k), "aws:"):
			return nil, bad("InvalidParameterValue", "Tag keys starting with 'aws:' are reserved for internal use")
		case k == "" || len([]rune(k)) > 128:
			return nil, bad("InvalidParameterValue", "Tag key exceeds the maximum length of 128 characters or is empty")
		case len([]rune(tag.str("Value"))) > 256:
			return nil, bad("InvalidParameterValue", "Tag value exceeds the maximum length of 256 characters")
		}
		t[k] = tag.str("Value")
	}
	if len(t) > mostTags {
		return nil, bad("TagLimitExceeded", "The maximum number of Tags for a resource has been reached.")
	}
	return t, nil
}

// fields gives the values that a filter of a name looks at.
type fields map[string][]string

func one(v string) []string { return []string{v} }

// passes reports whether a thing fits all the filters of the call.
func (q *request) passes(t tags, f fields) (bool, error) {
	for _, filter := range q.each("Filter") {
		name := filter.str("Name")
		have, known := f[name]
		switch key, isTag := strings.CutPrefix(name, "tag:"); {
		case isTag:
			if v, ok := t[key]; ok {
				have = one(v)
			}
		case name == "tag-key":
			for k := range t {
				have = append(have, k)
			}
		case name == "tag-value":
			for _, v := range t {
				have = append(have, v)
			}
		case !known:
			return false, bad("InvalidParameterValue", "The filter '%s' is invalid", name)
		}
		lacked, err := q.lackedFilter(name)
		if err != nil {
			return false, err
		}
		values := slices.DeleteFunc(filter.list("Value"), q.lackedWildcard)
		if lacked || !wire.AnyFits(values, have) {
			return false, nil
		}
	}
	return true, nil
}

// page cuts one page out of a list that is sorted by key. The token says the
// key of the last item that was seen, so that nothing is left out when items
// before it go.
func page[T any](q *request, items []T, most int, key func(T) string) ([]T, string, error) {
	if q.has("NextToken") {
		last, ok := strings.CutPrefix(q.str("NextToken"), q.call.Action+"/")
		if !ok {
			return nil, "", bad("InvalidParameterValue", "The token is invalid")
		}
		i := slices.IndexFunc(items, func(v T) bool { return key(v) > last })
		if i < 0 {
			return nil, "", nil
		}
		items = items[i:]
	}
	n := min(most, q.s.opt.PageSize)
	if q.has("MaxResults") {
		asked := q.num("MaxResults", 0)
		if asked < 1 {
			return nil, "", bad("InvalidParameterValue", "Value (%s) for parameter maxResults is invalid.", q.str("MaxResults"))
		}
		n = min(n, asked)
	}
	if len(items) <= n {
		return items, "", nil
	}
	return items[:n], q.call.Action + "/" + key(items[n-1]), nil
}

// base is the last element of an ARN or a path.
func base(s string) string { return path.Base(s) }

func fromBase64(s string) []byte {
	b, _ := base64.StdEncoding.DecodeString(s)
	return b
}
