//go:build unix

package fakeecs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dlwb/dlwb/internal/fakeaws"
)

// template is a launch template.
type template struct {
	id, name string
	data     url.Values
}

// group is an auto scaling group.
type group struct {
	name, subnet, template  string
	least, most, want       int
	machines                []string // ids of instances
	failed                  string
	ends                    time.Time
	endLeast, endMost, endN int
	going                   bool
}

func (f *Fake) launchTemplates(q request) (string, *Error) {
	switch q.name {
	case "CreateLaunchTemplate":
		name := q.form.Get("LaunchTemplateName")
		if f.templates[name] != nil {
			return "", bad("InvalidLaunchTemplateName.AlreadyExistsException", "Launch template name already in use.")
		}
		t := &template{id: fmt.Sprintf("lt-%017x", len(f.templates)+1), name: name, data: url.Values{}}
		for key, values := range q.form {
			if rest, is := strings.CutPrefix(key, "LaunchTemplateData."); is {
				t.data[rest] = values
			}
		}
		f.templates[name] = t
		return "<launchTemplate>" + t.xml() + "</launchTemplate>", nil
	case "DescribeLaunchTemplates":
		var all string
		for _, t := range f.templates {
			if t.name == q.form.Get("Filter.1.Value.1") {
				all += "<item>" + t.xml() + "</item>"
			}
		}
		return "<launchTemplates>" + all + "</launchTemplates>", nil
	case "DeleteLaunchTemplate":
		for name, t := range f.templates {
			if t.id == q.form.Get("LaunchTemplateId") {
				delete(f.templates, name)
				return "<launchTemplate>" + t.xml() + "</launchTemplate>", nil
			}
		}
		return "", bad("InvalidLaunchTemplateId.NotFound", "The specified launch template does not exist.")
	}
	return "", bad("InvalidAction", "unknown: %s", q.name)
}

func (t *template) xml() string {
	return fmt.Sprintf("<launchTemplateId>%s</launchTemplateId><launchTemplateName>%s</launchTemplateName><defaultVersionNumber>1</defaultVersionNumber><latestVersionNumber>1</latestVersionNumber>", t.id, t.name)
}

func (f *Fake) templateBy(id string) *template {
	for _, t := range f.templates {
		if t.id == id {
			return t
		}
	}
	return nil
}

// count reads a number of a form; other where it is not there.
func count(form url.Values, key string, other int) int {
	if n, err := strconv.Atoi(form.Get(key)); err == nil {
		return n
	}
	return other
}

func (f *Fake) scaling(q request) (string, *Error) {
	name := q.form.Get("AutoScalingGroupName")
	g := f.groups[name]
	if g == nil && q.name != "CreateAutoScalingGroup" && !strings.HasPrefix(q.name, "Describe") {
		return "", bad("ValidationError", "AutoScalingGroup name not found - AutoScalingGroup '%s' not found", name)
	}
	switch q.name {
	case "CreateAutoScalingGroup":
		if g != nil {
			return "", bad("AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name %s already exists", name)
		}
		id := q.form.Get("LaunchTemplate.LaunchTemplateId")
		if f.templateBy(id) == nil {
			return "", bad("ValidationError", "You must use a valid fully-formed launch template. The specified launch template, with template ID %s, does not exist.", id)
		}
		f.groups[name] = &group{name: name, subnet: q.form.Get("VPCZoneIdentifier"), template: id,
			least: count(q.form, "MinSize", 0), most: count(q.form, "MaxSize", 0), want: count(q.form, "DesiredCapacity", 0)}
	case "UpdateAutoScalingGroup":
		g.least, g.most, g.want = count(q.form, "MinSize", g.least), count(q.form, "MaxSize", g.most), count(q.form, "DesiredCapacity", g.want)
		if g.want > g.most || g.want < g.least {
			return "", bad("ValidationError", "Desired capacity:%d must be between the specified min size:%d and max size:%d", g.want, g.least, g.most)
		}
	case "PutScheduledUpdateGroupAction":
		at, err := time.Parse(time.RFC3339, q.form.Get("StartTime"))
		if err != nil || at.Before(time.Now()) {
			return "", bad("ValidationError", "Given start time is in the past")
		}
		g.ends, g.endLeast, g.endMost, g.endN = at, count(q.form, "MinSize", -1), count(q.form, "MaxSize", -1), count(q.form, "DesiredCapacity", -1)
	case "DeleteAutoScalingGroup":
		if q.form.Get("ForceDelete") != "true" && len(g.machines) > 0 {
			return "", bad("ResourceInUse", "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still in the group.")
		}
		g.want, g.least, g.most, g.going = 0, 0, 0, true
	case "DescribeAutoScalingGroups":
		return f.describeGroups(q), nil
	case "DescribeScalingActivities":
		if g == nil || g.failed == "" {
			return "<Activities/>", nil
		}
		return fmt.Sprintf("<Activities><member><ActivityId>a</ActivityId><AutoScalingGroupName>%s</AutoScalingGroupName><Cause>c</Cause><StartTime>2026-01-01T00:00:00Z</StartTime><StatusCode>Failed</StatusCode><StatusMessage>%s</StatusMessage></member></Activities>", name, g.failed), nil
	default:
		return "", bad("InvalidAction", "unknown: %s", q.name)
	}
	return "", nil
}

func (f *Fake) describeGroups(q request) string {
	var all string
	g := f.groups[q.form.Get("AutoScalingGroupNames.member.1")]
	if g != nil {
		var in string
		for _, id := range g.machines {
			state := "Pending"
			if f.running(id) {
				state = "InService"
			}
			in += fmt.Sprintf("<member><InstanceId>%s</InstanceId><LifecycleState>%s</LifecycleState><HealthStatus>Healthy</HealthStatus><AvailabilityZone>%sa</AvailabilityZone><ProtectedFromScaleIn>false</ProtectedFromScaleIn></member>", id, state, Region)
		}
		all = fmt.Sprintf("<member><AutoScalingGroupName>%[1]s</AutoScalingGroupName><AutoScalingGroupARN>%[2]s</AutoScalingGroupARN><MinSize>%[3]d</MinSize><MaxSize>%[4]d</MaxSize><DesiredCapacity>%[5]d</DesiredCapacity><DefaultCooldown>300</DefaultCooldown><HealthCheckType>EC2</HealthCheckType><CreatedTime>2026-01-01T00:00:00Z</CreatedTime><AvailabilityZones><member>%[7]sa</member></AvailabilityZones><Instances>%[6]s</Instances></member>",
			g.name, arn("autoscaling", "autoScalingGroup:x:autoScalingGroupName/"+g.name), g.least, g.most, g.want, in, Region)
	}
	return "<AutoScalingGroups>" + all + "</AutoScalingGroups>"
}

// ec2 calls the fake below.
func (f *Fake) ec2(action string, form url.Values) string {
	form.Set("Action", action)
	form.Set("Version", "2016-11-15")
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+fakeaws.AccessKey+"/20261124/"+Region+"/ec2/aws4_request, SignedHeaders=host, Signature="+strings.Repeat("0", 64))
	w := httptest.NewRecorder()
	f.AWS.ServeHTTP(w, r)
	return w.Body.String()
}

var (
	instanceID = regexp.MustCompile(`<instanceId>(i-[0-9a-f]+)</instanceId>`)
	imageID    = regexp.MustCompile(`<imageId>(ami-[0-9a-f]+)</imageId>`)
	message    = regexp.MustCompile(`<Message>([^<]*)`)
)

// launch makes one machine of a group.
func (f *Fake) launch(g *group) {
	t := f.templateBy(g.template)
	if t == nil {
		return
	}
	if why := f.Full[t.data.Get("InstanceType")]; why != "" {
		g.failed = why
		return
	}
	form := url.Values{"MinCount": {"1"}, "MaxCount": {"1"}}
	for key, values := range t.data {
		form[key] = values
	}
	form.Set("NetworkInterface.1.SubnetId", g.subnet)
	for _, key := range []string{"HttpTokens", "HttpPutResponseHopLimit"} {
		if v := form.Get("MetadataOptions." + key); v != "" {
			form.Set("MetadataOptions."+key, v)
		}
	}
	said := f.ec2("RunInstances", form)
	id := instanceID.FindStringSubmatch(said)
	if id == nil {
		g.failed = "Launching a new EC2 instance. Status Reason: launch failed"
		if m := message.FindStringSubmatch(said); m != nil {
			g.failed = m[1]
		}
		return
	}
	g.failed = ""
	g.machines = append(g.machines, id[1])
	if !f.Unnamed {
		f.AWS.Tag(Region, id[1], "aws:autoscaling:groupName", g.name)
	}
}

// running reports whether an instance runs.
func (f *Fake) running(id string) bool {
	return slices.ContainsFunc(f.AWS.Running(), func(s fakeaws.Seen) bool { return s.ID == id })
}

// reconcile is the life of groups, services and containers.
func (f *Fake) reconcile() {
	for {
		select {
		case <-f.done:
			return
		case <-time.After(50 * time.Millisecond):
		}
		f.mu.Lock()
		for name, g := range f.groups {
			f.keep(name, g)
		}
		for _, c := range f.clusters {
			f.keepCluster(c)
		}
		f.mu.Unlock()
	}
}

// Ahead has the scheduled actions of groups come by a clock that is ahead.
func (f *Fake) Ahead(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ahead = by
}

// keep has a group have as many machines as it is to have.
func (f *Fake) keep(name string, g *group) {
	if !g.ends.IsZero() && time.Now().Add(f.ahead).After(g.ends) {
		g.least, g.most, g.want, g.ends = g.endLeast, g.endMost, g.endN, time.Time{}
	}
	g.machines = slices.DeleteFunc(g.machines, func(id string) bool { return !f.AWS.Exists(Region, id) })
	for len(g.machines) < g.want {
		before := len(g.machines)
		if f.launch(g); len(g.machines) == before {
			return
		}
	}
	for len(g.machines) > g.want {
		f.ec2("TerminateInstances", url.Values{"InstanceId.1": {g.machines[0]}})
		g.machines = g.machines[1:]
	}
	if g.going && len(g.machines) == 0 {
		delete(f.groups, name)
	}
}
