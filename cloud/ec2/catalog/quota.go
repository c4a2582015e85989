package catalog

import (
	"fmt"
	"strings"

	"github.com/dlwb/dlwb/cloud"
)

// class is a set of families of types that share one quota, counted in vCPUs.
type class struct{ name, code string }

var (
	onDemandG        = class{"Running On-Demand G and VT instances", "L-DB2E81BA"}
	onDemandP        = class{"Running On-Demand P instances", "L-417A185B"}
	onDemandStandard = class{"Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", "L-1216C47A"}
	spotG            = class{"All G and VT Spot Instance Requests", "L-3819A6DF"}
	spotP            = class{"All P4, P3 and P2 Spot Instance Requests", "L-7212CCBC"}
	spotP5           = class{"All P5 Spot Instance Requests", "L-C4BD4855"}
	spotStandard     = class{"All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests", "L-34B43A08"}
)

// classes are all quotas that dlwb asks for.
var classes = []class{onDemandG, onDemandP, onDemandStandard, spotG, spotP, spotP5, spotStandard}

// QuotaName says which quota counts an instance type: its name and its code in
// Service Quotas. Both are empty when dlwb does not know it (accelerators of
// AWS's own, machines with huge memory, p6 as spot).
func QuotaName(instanceType string, spot bool) (name, code string) {
	c := classOf(instanceType, spot)
	return c.name, c.code
}

func classOf(instanceType string, spot bool) class {
	switch letters := familyLetters(instanceType); letters {
	case "g", "gr", "vt":
		return either(spot, spotG, onDemandG)
	case "p":
		return either(spot, spotClassOfP(instanceType), onDemandP)
	case "a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z":
		return either(spot, spotStandard, onDemandStandard)
	}
	return class{}
}

func either(spot bool, yes, no class) class {
	if spot {
		return yes
	}
	return no
}

// spotClassOfP knows that P has one quota on demand and several for spot.
func spotClassOfP(instanceType string) class {
	switch {
	case strings.HasPrefix(instanceType, "p5"):
		return spotP5
	case strings.HasPrefix(instanceType, "p4"), strings.HasPrefix(instanceType, "p3"), strings.HasPrefix(instanceType, "p2"):
		return spotP
	}
	return class{}
}

// familyLetters is "gr" of "gr6.4xlarge".
func familyLetters(instanceType string) string {
	end := strings.IndexFunc(instanceType, func(r rune) bool { return r < 'a' || r > 'z' })
	if end < 0 {
		return instanceType
	}
	return instanceType[:end]
}

// quotas is what was learned of all classes in one region.
type quotas struct {
	Limits map[string]limit `json:"limits"` // by code
	Used   map[string]int   `json:"used"`   // vCPUs, by code
	// UsedWhy says, by code, why Used is not known.
	UsedWhy map[string]string `json:"used_why,omitempty"`
}

// limit is the value of one quota.
type limit struct {
	VCPUs int    `json:"vcpus"`
	Why   string `json:"why,omitempty"` // why it is not known; empty when it is
}

// quota is what the account may still run of a type.
func (v *view) quota(instanceType string, vcpus int, spot bool) cloud.Quota {
	c := classOf(instanceType, spot)
	q := cloud.Quota{Name: c.name, Code: c.code}
	l, asked := v.quotas.value.Limits[c.code]
	switch {
	case c.code == "":
		q.Why = "dlwb does not know which quota counts this type"
	case !v.quotas.ok && v.quotas.err != nil:
		q.Why = sentence(v.quotas.err)
	case !asked || vcpus <= 0:
		q.Why = "it was not asked for"
	case l.Why != "":
		q.Why = l.Why
	case v.quotas.value.UsedWhy[c.code] != "":
		q.Limit = l.VCPUs
		q.Why = fmt.Sprintf("the quota is %d vCPUs, but what runs already is not known: %s", l.VCPUs, v.quotas.value.UsedWhy[c.code])
	default:
		q.Known, q.Limit, q.Used = true, l.VCPUs, v.quotas.value.Used[c.code]
		q.Left = max(0, q.Limit-q.Used) / vcpus
	}
	return q
}
