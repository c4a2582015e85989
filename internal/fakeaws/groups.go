package fakeaws

import (
	"slices"
	"strconv"
	"strings"

	"github.com/dlwb/dlwb/internal/fakeaws/wire"
)

// anywhere is the rule that every group has from its start: out to all.
func anywhere(id string) rule {
	return rule{ID: id, Egress: true, Proto: "-1", From: -1, To: -1, CIDR: "0.0.0.0/0"}
}

func createSecurityGroup(q *request) (any, error) {
	r, name := q.region, q.str("GroupName")
	vpc := q.str("VpcId")
	orElse(&vpc, r.vpc)
	switch {
	case !r.hasVPC(vpc):
		return nil, bad("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", vpc)
	case name == "" || len(name) > 255 || strings.HasPrefix(name, "sg-") || name == "default":
		return nil, bad("InvalidParameterValue", "Invalid value '%s' for groupName.", name)
	case q.str("GroupDescription") == "":
		return nil, bad("MissingParameter", "The request must contain the parameter GroupDescription")
	case !plainText(q.str("GroupDescription")):
		return nil, bad("InvalidParameterValue", "Invalid security group description. Valid descriptions are strings less than 256 characters "+
			"from the following set:  a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*")
	}
	for _, g := range r.groups.all() {
		if g.Name == name {
			return nil, bad("InvalidGroup.Duplicate", "The security group '%s' already exists for VPC '%s'", name, vpc)
		}
	}
	if err := q.onlyTags("security-group"); err != nil {
		return nil, err
	}
	t, err := q.tagsFor("security-group")
	if err != nil {
		return nil, err
	}
	g := group{common: common{wire.NewID("sg"), t}, Name: name, Description: q.str("GroupDescription"), VPC: vpc, Out: []rule{anywhere(wire.NewID("sgr"))}}
	r.groups.put(g)
	return struct {
		Return bool             `xml:"return"`
		ID     string           `xml:"groupId"`
		Tags   wire.Set[tagXML] `xml:"tagSet"`
	}{true, g.ID, t.xml()}, nil
}

func plainText(s string) bool {
	const marks = ". _-:/()#,@[]+=&;{}!$*"
	return len(s) < 256 && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(marks, c)
	})
}

// groupOf finds the group that a call names.
func (q *request) groupOf() (group, error) {
	r, id := q.region, q.str("GroupId")
	if name := q.str("GroupName"); id == "" && name != "" {
		for _, g := range r.groups.listed() {
			if g.Name == name {
				id = g.ID
			}
		}
		if id == "" {
			return group{}, bad("InvalidGroup.NotFound", "The security group '%s' does not exist in default VPC '%s'", name, r.vpc)
		}
	}
	if id == "" {
		return group{}, bad("MissingParameter", "The request must contain the parameter groupName or groupId")
	}
	if !wire.WellFormedID("sg", id) {
		return group{}, bad("InvalidGroupId.Malformed", "Invalid id: \"%s\" (expecting \"sg-...\")", id)
	}
	g, ok := r.groups.usable(id)
	if !ok {
		return group{}, bad("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
	}
	return g, nil
}

// deleteSecurityGroup refuses while anything uses the group: an instance, and
// for some time after its end, an interface, or another group's rule.
func deleteSecurityGroup(q *request) (any, error) {
	g, err := q.groupOf()
	if err != nil {
		return nil, err
	}
	r := q.region
	if g.Name == "default" {
		return nil, bad("CannotDelete", "the specified group: \"%s\" name: \"default\" cannot be deleted by a user", g.ID)
	}
	if r.groupUsed(g.ID) {
		return nil, bad("DependencyViolation", "resource %s has a dependent object", g.ID)
	}
	r.groups.remove(g.ID)
	return struct {
		Return bool   `xml:"return"`
		ID     string `xml:"groupId"`
	}{true, g.ID}, nil
}

func (r *region) groupUsed(id string) bool {
	now := r.s.clock.Now()
	return slices.ContainsFunc(r.instances.all(), func(i instance) bool { return i.holds(id, now, r.s.opt.Release) }) ||
		slices.ContainsFunc(r.interfaces.all(), func(n netInterface) bool { return slices.Contains(n.Groups, id) }) ||
		slices.ContainsFunc(r.groups.all(), func(g group) bool {
			names := func(x rule) bool { return x.Group == id }
			return g.ID != id && (slices.ContainsFunc(g.In, names) || slices.ContainsFunc(g.Out, names))
		})
}

// rulesAsked are the rules of a call, one for each source.
func (q *request) rulesAsked(egress bool) ([]rule, error) {
	asked := q.each("IpPermissions")
	if len(asked) == 0 && q.has("IpProtocol") {
		asked = []params{q.params}
	}
	var out []rule
	for _, p := range asked {
		base := rule{Egress: egress, Proto: protocol(p.str("IpProtocol")), From: p.num("FromPort", -1), To: p.num("ToPort", -1)}
		switch base.Proto {
		case "-1":
			base.From, base.To = -1, -1
		case "tcp", "udp":
			if base.From < 0 || base.To > 65535 || base.From > base.To {
				return nil, bad("InvalidParameterValue", "Invalid TCP/UDP port range (%d:%d)", base.From, base.To)
			}
		case "":
			return nil, bad("MissingParameter", "The request must contain the parameter ipProtocol")
		}
		rules, err := q.sources(p, base)
		if err != nil {
			return nil, err
		}
		out = append(out, rules...)
	}
	if len(out) == 0 {
		return nil, bad("InvalidParameterValue", "Invalid value 'null' for portRange. Must specify both from and to ports with TCP/UDP.")
	}
	return out, nil
}

func protocol(s string) string {
	switch s {
	case "all":
		return "-1"
	case "6":
		return "tcp"
	case "17":
		return "udp"
	}
	return s
}

func (q *request) sources(p params, base rule) ([]rule, error) {
	var out []rule
	add := func(in params, set func(*rule)) {
		x := base
		x.ID, x.Description = wire.NewID("sgr"), in.str("Description")
		set(&x)
		out = append(out, x)
	}
	if p.has("CidrIp") {
		add(p, func(x *rule) { x.CIDR = p.str("CidrIp") })
	}
	for _, in := range p.each("IpRanges") {
		add(in, func(x *rule) { x.CIDR = in.str("CidrIp") })
	}
	for _, in := range p.each("Ipv6Ranges") {
		add(in, func(x *rule) { x.CIDR6 = in.str("CidrIpv6") })
	}
	for _, in := range p.each("PrefixListIds") {
		add(in, func(x *rule) { x.List = in.str("PrefixListId") })
	}
	for _, in := range p.each("Groups") {
		if _, ok := q.region.groups.usable(in.str("GroupId")); !ok {
			return nil, bad("InvalidGroup.NotFound", "The security group '%s' does not exist", in.str("GroupId"))
		}
		add(in, func(x *rule) { x.Group = in.str("GroupId") })
	}
	for _, x := range out {
		if (x.CIDR != "" || x.Group == "" && x.CIDR6 == "" && x.List == "") && !isCIDR(x.CIDR) || x.CIDR6 != "" && !isCIDR(x.CIDR6) {
			return nil, bad("InvalidParameterValue", "CIDR block %s%s is malformed", x.CIDR, x.CIDR6)
		}
	}
	return out, nil
}

// same reports whether two rules let the same through.
func (x rule) same(y rule) bool {
	x.ID, x.Description, y.ID, y.Description = "", "", "", ""
	return x == y
}

func (g group) rules(egress bool) []rule {
	if egress {
		return g.Out
	}
	return g.In
}

func (g group) withRules(egress bool, rules []rule) group {
	if egress {
		g.Out = rules
	} else {
		g.In = rules
	}
	return g
}

func authorize(egress bool) action {
	return func(q *request) (any, error) {
		g, err := q.groupOf()
		if err != nil {
			return nil, err
		}
		asked, err := q.rulesAsked(egress)
		if err != nil {
			return nil, err
		}
		rules := slices.Clone(g.rules(egress))
		for _, x := range asked {
			if slices.ContainsFunc(rules, x.same) {
				return nil, bad("InvalidPermission.Duplicate", "the specified rule \"peer: %s%s%s, %s, ALLOW\" already exists",
					x.CIDR, x.CIDR6, x.Group, portsOf(x))
			}
			rules = append(rules, x)
		}
		if len(rules) > 60 {
			return nil, bad("RulesPerSecurityGroupLimitExceeded", "The maximum number of rules per security group has been reached.")
		}
		q.region.groups.put(g.withRules(egress, rules))
		return struct {
			Return bool              `xml:"return"`
			Rules  wire.Set[ruleXML] `xml:"securityGroupRuleSet"`
		}{true, wire.SetOf(each(asked, func(x rule) ruleXML { return q.region.ruleXML(g, x) }))}, nil
	}
}

func portsOf(x rule) string {
	if x.Proto == "-1" {
		return "ALL"
	}
	return strings.ToUpper(x.Proto) + ", from port: " + strconv.Itoa(x.From) + ", to port: " + strconv.Itoa(x.To)
}

func revoke(egress bool) action {
	return func(q *request) (any, error) {
		g, err := q.groupOf()
		if err != nil {
			return nil, err
		}
		rules, ids := slices.Clone(g.rules(egress)), q.list("SecurityGroupRuleId")
		var asked []rule
		if len(ids) == 0 {
			if asked, err = q.rulesAsked(egress); err != nil {
				return nil, err
			}
		}
		for _, id := range ids {
			i := slices.IndexFunc(rules, func(x rule) bool { return x.ID == id })
			if i < 0 {
				return nil, bad("InvalidSecurityGroupRuleId.NotFound", "The security group rule ID '%s' does not exist", id)
			}
			asked = append(asked, rules[i])
		}
		for _, x := range asked {
			i := slices.IndexFunc(rules, x.same)
			if i < 0 {
				return nil, bad("InvalidPermission.NotFound", "The specified rule does not exist in this security group.")
			}
			rules = slices.Delete(rules, i, i+1)
		}
		q.region.groups.put(g.withRules(egress, rules))
		return done{true}, nil
	}
}
