package fakeaws

import (
	"slices"
	"strings"
)

// parameter is one of SSM's public parameters: an image's id.
type parameter struct {
	Name, Type, Value, DataType string
	ARN                         string
	Version                     int
	LastModifiedDate            float64
}

func (r *region) parameters() []parameter {
	var out []parameter
	for _, i := range r.images {
		if i.Parameter != "" {
			out = append(out, parameter{i.Parameter, "String", i.ID, "aws:ec2:image", "arn:aws:ssm:" + r.Name + "::parameter" + i.Parameter, 7,
				float64(i.Made.Unix())})
		}
	}
	slices.SortFunc(out, func(a, b parameter) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func getParameter(q *request) (any, error) {
	for _, p := range q.region.parameters() {
		if p.Name == q.str("Name") {
			return struct{ Parameter parameter }{p}, nil
		}
	}
	return nil, bad("ParameterNotFound", "Parameter %s not found.", q.str("Name"))
}

func getParameters(q *request) (any, error) {
	out := struct {
		Parameters        []parameter
		InvalidParameters []string
	}{[]parameter{}, []string{}}
	all := q.region.parameters()
	for _, name := range q.list("Names") {
		if i := slices.IndexFunc(all, func(p parameter) bool { return p.Name == name }); i >= 0 {
			out.Parameters = append(out.Parameters, all[i])
		} else {
			out.InvalidParameters = append(out.InvalidParameters, name)
		}
	}
	return out, nil
}

// parametersPage is the most parameters that are on one page.
const parametersPage = 10

func getParametersByPath(q *request) (any, error) {
	under := strings.TrimSuffix(q.str("Path"), "/") + "/"
	if !strings.HasPrefix(under, "/") {
		return nil, bad("ValidationException", "The parameter doesn't meet the parameter name requirements.")
	}
	if q.num("MaxResults", 1) > parametersPage {
		return nil, bad("ValidationException", "Member must have value less than or equal to 10")
	}
	var found []parameter
	for _, p := range q.region.parameters() {
		rest, below := strings.CutPrefix(p.Name, under)
		if below && (q.is("Recursive") || !strings.Contains(rest, "/")) {
			found = append(found, p)
		}
	}
	found, next, err := page(q, found, parametersPage, func(p parameter) string { return p.Name })
	if err != nil {
		return nil, err
	}
	return struct {
		Parameters []parameter
		NextToken  string `json:",omitempty"`
	}{append([]parameter{}, found...), next}, nil
}
