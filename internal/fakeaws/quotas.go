package fakeaws

import (
	"slices"
	"strings"
)

// ec2Quotas are the quotas that count vCPUs, with what an account gets that
// has run machines before.
var ec2Quotas = []struct {
	code, name string
	limit      float64
}{
	{"L-1216C47A", "Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 1152},
	{"L-34B43A08", "All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", 1152},
	{"L-3819A6DF", "All G and VT Spot Instance Requests", 768},
	{"L-417A185B", "Running On-Demand P instances", 768},
	{"L-7212CCBC", "All P4, P3 and P2 Spot Instance Requests", 768},
	{"L-C4BD4855", "All P5 Spot Instance Requests", 768},
	{"L-DB2E81BA", "Running On-Demand G and VT instances", 768},
}

// grant applies all quotas but one, which is known by its default only.
func (s *Server) grant() {
	for _, r := range s.regions {
		for _, q := range ec2Quotas {
			if q.code != "L-C4BD4855" {
				r.quotas[q.code] = q.limit
			}
		}
	}
}

// quota is what counts: the one applied, or else the default.
func (r *region) quota(code string) float64 {
	if v, ok := r.quotas[code]; ok {
		return v
	}
	for _, q := range ec2Quotas {
		if q.code == code {
			return q.limit
		}
	}
	return 0
}

// used is how many vCPUs of a quota the living instances take.
func (r *region) used(code string) int {
	now, sum := r.s.clock.Now(), 0
	for _, i := range r.instances.all() {
		if t := r.s.byName[i.Type]; i.alive(now) && t.QuotaCode(i.Spot != "") == code {
			sum += t.VCPUs
		}
	}
	return sum
}

type quotaJSON struct {
	ServiceCode, ServiceName, QuotaArn, QuotaCode, QuotaName, Unit string
	Value                                                          float64
	Adjustable, GlobalQuota                                        bool
}

// quotasKnown are the quotas of the account, or AWS's defaults.
func (q *request) quotasKnown(applied bool) []quotaJSON {
	var out []quotaJSON
	for _, known := range ec2Quotas {
		value, ok := q.region.quotas[known.code]
		if applied && !ok {
			continue
		}
		if !applied {
			value = known.limit
		}
		out = append(out, quotaJSON{"ec2", "Amazon Elastic Compute Cloud (Amazon EC2)",
			"arn:aws:servicequotas:" + q.region.Name + ":" + q.s.opt.Account + ":ec2/" + known.code, known.code, known.name, "None", value, true, false})
	}
	slices.SortFunc(out, func(a, b quotaJSON) int { return strings.Compare(a.QuotaCode, b.QuotaCode) })
	return out
}

func getQuota(applied bool) action {
	return func(q *request) (any, error) {
		for _, known := range q.quotasKnown(applied) {
			if known.QuotaCode == q.str("QuotaCode") && q.str("ServiceCode") == "ec2" {
				return struct{ Quota quotaJSON }{known}, nil
			}
		}
		return nil, bad("NoSuchResourceException", "The request failed because the specified quota does not exist.")
	}
}

func listQuotas(applied bool) action {
	return func(q *request) (any, error) {
		if q.str("ServiceCode") != "ec2" {
			return nil, bad("NoSuchResourceException", "The request failed because the specified service does not exist.")
		}
		found, next, err := page(q, q.quotasKnown(applied), 100, func(k quotaJSON) string { return k.QuotaCode })
		if err != nil {
			return nil, err
		}
		return struct {
			Quotas    []quotaJSON
			NextToken string `json:",omitempty"`
		}{found, next}, nil
	}
}
