//go:build unix

package fakeecs

import (
	"fmt"
	"slices"
	"strings"
)

// cloudwatch answers for groups of logs.
func (f *Fake) cloudwatch(q request) (any, *Error) {
	name := str(q.in, "logGroupName")
	switch q.name {
	case "CreateLogGroup":
		if f.logs[name] != nil {
			return nil, bad("ResourceAlreadyExistsException", "The specified log group already exists")
		}
		f.logs[name] = map[string][]string{}
		return m{}, nil
	case "DeleteLogGroup":
		if f.logs[name] == nil {
			return nil, bad("ResourceNotFoundException", "The specified log group does not exist.")
		}
		delete(f.logs, name)
		return m{}, nil
	case "DescribeLogGroups":
		all := []m{}
		for group := range f.logs {
			if strings.HasPrefix(group, str(q.in, "logGroupNamePrefix")) {
				all = append(all, m{"logGroupName": group})
			}
		}
		return m{"logGroups": all}, nil
	case "GetLogEvents":
		lines := f.logs[name][str(q.in, "logStreamName")]
		if lines == nil {
			return nil, bad("ResourceNotFoundException", "The specified log stream does not exist.")
		}
		all := []m{}
		for _, line := range lines[max(0, len(lines)-number(q.in, "limit")):] {
			all = append(all, m{"timestamp": 1, "message": line})
		}
		return m{"events": all}, nil
	}
	return nil, bad("UnknownOperationException", "unknown: %s", q.name)
}

// ssm answers for ECS's images and for sessions, which lead to the dashboard.
func (f *Fake) ssm(q request) (any, *Error) {
	switch q.name {
	case "StartSession":
		parameters, _ := q.in["Parameters"].(m)
		ports := texts(parameters, "portNumber")
		target := str(q.in, "Target")
		if !f.running(target) {
			return nil, bad("TargetNotConnected", "%s is not connected.", target)
		}
		ip, own := f.board.headAt()
		switch hosts := texts(parameters, "host"); {
		case len(ports) == 1 && str(q.in, "DocumentName") == "AWS-StartSSHSession" && !own:
		case len(ports) == 1 && str(q.in, "DocumentName") == "AWS-StartPortForwardingSessionToRemoteHost" && len(hosts) == 1 && hosts[0] == ip:
		default:
			return nil, bad("InvalidDocument", "nothing listens there")
		}
		to := f.board.address()
		if f.Ray != "" {
			to = "127.0.0.1:" + f.port(ports[0])
		}
		return m{"SessionId": "s-1", "TokenValue": "t", "StreamUrl": "tcp://" + to}, nil
	case "TerminateSession":
		return m{"SessionId": "s-1"}, nil
	}
	said := str(q.in, "Name")
	switch kept := f.parameters[said]; {
	case q.name == "PutParameter" && kept != nil:
		return nil, bad("ParameterAlreadyExists", "The parameter already exists. To overwrite this value, set the overwrite option in the request to true.")
	case q.name == "PutParameter":
		f.parameters[said] = q.in
		return m{"Version": 1, "Tier": "Standard"}, nil
	case q.name == "DeleteParameter" && kept != nil:
		delete(f.parameters, said)
		return m{}, nil
	case kept != nil: // GetParameter: what it holds comes encrypted
		return m{"Parameter": m{"Name": said, "ARN": arn("ssm", "parameter"+said), "Type": kept["Type"], "Value": "AQICAHh", "Version": 1}}, nil
	}
	if !slices.Contains([]string{"", "gpu/", "arm64/"}, strings.TrimSuffix(strings.TrimPrefix(said, "/aws/service/ecs/optimized-ami/amazon-linux-2023/"), "recommended/image_id")) {
		return nil, bad("ParameterNotFound", "")
	}
	id := imageID.FindStringSubmatch(f.ec2("DescribeImages", map[string][]string{"Filter.1.Name": {"architecture"}, "Filter.1.Value.1": {"x86_64"}}))
	if id == nil {
		return nil, bad("ParameterNotFound", "")
	}
	return m{"Parameter": m{"Name": said, "Type": "String", "Value": id[1]}}, nil
}

// iam answers for instance profiles and what their roles may do.
func (f *Fake) iam(q request) (string, *Error) {
	switch q.name {
	case "GetInstanceProfile":
		name := q.form.Get("InstanceProfileName")
		if !slices.Contains(f.Profiles, name) {
			return "", &Error{404, "NoSuchEntity", "Instance Profile " + name + " cannot be found."}
		}
		role := `<Path>/</Path><RoleName>r</RoleName><RoleId>AROA</RoleId><Arn>arn:aws:iam::123456789012:role/r</Arn><CreateDate>2026-01-01T00:00:00Z</CreateDate>`
		return fmt.Sprintf(`<InstanceProfile><Path>/</Path><InstanceProfileName>%s</InstanceProfileName><InstanceProfileId>AIPA</InstanceProfileId><Arn>arn:aws:iam::123456789012:instance-profile/%[1]s</Arn><CreateDate>2026-01-01T00:00:00Z</CreateDate><Roles><member>%s</member></Roles></InstanceProfile>`, name, role), nil
	case "SimulatePrincipalPolicy":
		var all string
		for i := 1; q.form.Get(fmt.Sprintf("ActionNames.member.%d", i)) != ""; i++ {
			name, decision := q.form.Get(fmt.Sprintf("ActionNames.member.%d", i)), "allowed"
			if f.RefusesTo(name) {
				decision = "implicitDeny"
			}
			all += "<member><EvalActionName>" + name + "</EvalActionName><EvalDecision>" + decision + "</EvalDecision></member>"
		}
		return "<EvaluationResults>" + all + "</EvaluationResults><IsTruncated>false</IsTruncated>", nil
	}
	return "", bad("InvalidAction", "unknown: %s", q.name)
}
