//go:build unix

package fakesagemaker

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// form answers STS and IAM.
func (f *Fake) form(w http.ResponseWriter, r *http.Request, name string, in url.Values) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w.Header().Set("Content-Type", "text/xml")
	switch name {
	case "GetCallerIdentity":
		whose := cmp.Or(f.Caller, Account)
		_, _ = fmt.Fprintf(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:iam::%s:user/ann</Arn>`+
			`<UserId>AIDA</UserId><Account>%s</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`, whose, whose)
	case "GetRole":
		trust, is := f.roles[in.Get("RoleName")]
		if !is {
			f.refuse(w, r, &Error{404, "NoSuchEntity", "The role with name " + in.Get("RoleName") + " cannot be found."})
			return
		}
		_, _ = fmt.Fprintf(w, `<GetRoleResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><GetRoleResult><Role><Path>/</Path><RoleName>%[1]s</RoleName><RoleId>AROA</RoleId>`+
			`<Arn>arn:aws:iam::%[2]s:role/%[1]s</Arn><CreateDate>2026-01-01T00:00:00Z</CreateDate><AssumeRolePolicyDocument>%[3]s</AssumeRolePolicyDocument></Role></GetRoleResult></GetRoleResponse>`,
			in.Get("RoleName"), Account, url.QueryEscape(trust))
	case "SimulatePrincipalPolicy":
		_, _ = fmt.Fprint(w, `<SimulatePrincipalPolicyResponse xmlns="https://iam.amazonaws.com/doc/2010-05-08/"><SimulatePrincipalPolicyResult><IsTruncated>false</IsTruncated><EvaluationResults>`)
		for i := 1; in.Has(fmt.Sprintf("ActionNames.member.%d", i)); i++ {
			action, decision := in.Get(fmt.Sprintf("ActionNames.member.%d", i)), "allowed"
			if f.RefusesTo(action) {
				decision = "implicitDeny"
			}
			_, _ = fmt.Fprintf(w, `<member><EvalActionName>%s</EvalActionName><EvalDecision>%s</EvalDecision></member>`, action, decision)
		}
		_, _ = fmt.Fprint(w, `</EvaluationResults></SimulatePrincipalPolicyResult></SimulatePrincipalPolicyResponse>`)
	case "GetMetricData":
		f.metricData(w, r, in)
	default:
		f.refuse(w, r, &Error{400, "InvalidAction", "unknown: " + name})
	}
}

// quotas are two of each of some types, on pages of two.
func (f *Fake) quotas(body []byte) (any, *Error) {
	in, e := read[struct{ NextToken string }](body)
	if e != nil {
		return nil, e
	}
	var all []map[string]any
	for _, kind := range []string{"ml.m5.large", "ml.g5.xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge"} {
		for _, use := range []string{" for training job usage", " for spot training job usage"} {
			all = append(all, map[string]any{"QuotaName": kind + use, "QuotaCode": "L-" + strings.ToUpper(kind[3:5]) + "0001", "Value": float64(f.Quota), "ServiceCode": "sagemaker"})
		}
	}
	from := 0
	_, _ = fmt.Sscan(in.NextToken, &from)
	out := map[string]any{"Quotas": all[from:min(from+2, len(all))]}
	if from+2 < len(all) {
		out["NextToken"] = fmt.Sprint(from + 2)
	}
	return out, nil
}

// products is the price of a type.
func (f *Fake) products(body []byte) (any, *Error) {
	in, e := read[struct {
		ServiceCode string
		Filters     []struct{ Field, Value string }
	}](body)
	if e != nil {
		return nil, e
	}
	prices := map[string]string{"ml.m5.large": "0.1150000000", "ml.g5.xlarge": "1.4080000000", "ml.g5.12xlarge": "7.0900000000"}
	for _, filter := range in.Filters {
		price, is := prices[filter.Value]
		if filter.Field != "instanceName" || !is || in.ServiceCode != "AmazonSageMaker" {
			continue
		}
		entry, _ := json.Marshal(map[string]any{"terms": map[string]any{"OnDemand": map[string]any{"A.B": map[string]any{"priceDimensions": map[string]any{"A.B.C": map[string]any{
			"unit": "Hrs", "pricePerUnit": map[string]string{"USD": price}}}}}}})
		return map[string]any{"PriceList": []string{string(entry)}}, nil
	}
	return map[string]any{"PriceList": []string{}}, nil
}
