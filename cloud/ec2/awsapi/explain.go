package awsapi

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/dlwb/dlwb/internal/pattern"
)

// Kind is what a failed call means for whoever made it.
type Kind string

// The kinds of problems. Of all but Unknown it is certain that the call was
// not carried out.
const (
	NoCredentials Kind = "no credentials"
	NoPermission  Kind = "no permission"
	NoQuota       Kind = "quota"       // region-wide: another zone is no help
	NoCapacity    Kind = "no capacity" // of this zone, now
	NotOffered    Kind = "not offered" // by this zone, ever
	BadRequest    Kind = "bad request" // sent again it fails again
	NotFound      Kind = "not found"   // or not yet visible
	Exists        Kind = "exists"      // something of that name
	InUse         Kind = "in use"      // something else still needs it
	Mismatch      Kind = "mismatch"    // the client token was used with other parameters
	Throttled     Kind = "throttled"   // too many calls
	Unreachable   Kind = "unreachable" // no connection, so nothing was sent
	Unknown       Kind = "unknown"     // it may have been carried out, or not
)

// Problem is a failed call in a person's words.
type Problem struct {
	Kind  Kind
	Code  string // AWS's own: "InsufficientInstanceCapacity"; empty for none
	Cause string // a sentence
	Next  string // what to do: a command, or a place in the console
	// Missing is the permission that was refused ("ec2:RunInstances"); empty
	// where AWS does not tell.
	Missing string
	Err     error
}

func (p *Problem) Error() string { return p.Cause }

// Advice is what to do about it.
func (p *Problem) Advice() string { return p.Next }

// Doubtful reports whether it says nothing of what was asked for: AWS gave no answer, or
// none that counts.
func (p *Problem) Doubtful() bool {
	return p.Kind == Unknown || p.Kind == Throttled || p.Kind == Unreachable
}

// Unwrap gives the SDK's error. Its text is AWS's, and may say more than a
// screen or a log should show.
func (p *Problem) Unwrap() error { return p.Err }

// Call says what was asked for, so that a problem can name it.
type Call struct {
	Action   string // "RunInstances"
	Region   string
	Zone     string
	Instance string // type
	Count    int
	VCPUs    int // of one machine; 0: not known
	Spot     bool
	ID       string // of the resource it was about
	Dry      bool   // nothing is to be carried out
	Quota    string // the code of the type's quota, "L-DB2E81BA"; empty: not known
}

// Explain says what an error of the SDK means. It returns nil for nil. What it
// says holds for a call that was sent once; of a call that the SDK repeated it
// is the last attempt's story.
func Explain(err error, c Call) *Problem {
	if err == nil {
		return nil
	}
	if known := (*Problem)(nil); errors.As(err, &known) {
		return known
	}
	c.Action = cmp.Or(c.Action, operation(err))
	if p := unsent(err, c); p != nil {
		return p
	}
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() != noCode {
		return answered(err, api, c)
	}
	return doubt(err, c)
}

// noCode is what the SDK calls an error without a code.
const noCode = "UnknownError"

// Allowed reports whether a call made as a dry run would have been carried
// out.
func Allowed(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "DryRunOperation"
}

// answered explains an error that AWS itself gave.
func answered(err error, api smithy.APIError, c Call) *Problem {
	code, status := api.ErrorCode(), httpStatus(err)
	r, listed := lookup(code)
	switch {
	case (status >= 500 || status == http.StatusRequestTimeout) && !r.anyStatus():
		r = rule{Unknown, "AWS failed at {action} ({code}){doubt}: {says}", nextUnknown}
	case !listed:
		r = rule{BadRequest, "AWS refuses {action} ({code}): {says}", nextBadRequest}
	}
	p := &Problem{Kind: r.kind, Code: code, Err: err}
	c.ID = cmp.Or(named(api.ErrorMessage()), c.ID)
	words := c.words(code, api.ErrorMessage())
	p.Cause, p.Next = words.Replace(r.cause), words.Replace(r.next)
	if r.kind == Unknown {
		p.Next = nextDoubt(err, c)
	}
	switch code {
	case "UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "NotAuthorized":
		p.permission(api.ErrorMessage(), c)
	case "VcpuLimitExceeded", "MaxSpotInstanceCountExceeded":
		p.quota(api.ErrorMessage(), c)
	}
	return p
}

// operation is the call that failed, as the SDK names it.
func operation(err error) string {
	var op *smithy.OperationError
	if errors.As(err, &op) {
		return op.OperationName
	}
	return ""
}

// service is the prefix of the permissions of the service that was called.
func service(err error) string {
	var op *smithy.OperationError
	if errors.As(err, &op) {
		return strings.ToLower(strings.ReplaceAll(op.ServiceID, " ", ""))
	}
	return "ec2"
}

var quoted = pattern.New(`['"]\[?([A-Za-z0-9][A-Za-z0-9._-]*)\]?['"]|\b((?:i|ami|sg|subnet|vol|vpc|eni|pg|key)-[0-9a-f]{8,17})\b`)

// named is the resource that AWS's words are about; empty for none. It has
// only characters that are safe in a command line.
func named(says string) string {
	m := quoted.FindStringSubmatch(says)
	if m == nil {
		return ""
	}
	return cmp.Or(m[1], m[2])
}

func httpStatus(err error) int {
	var resp *smithyhttp.ResponseError
	if errors.As(err, &resp) && resp.Response != nil {
		return resp.HTTPStatusCode()
	}
	return 0
}

// lookup finds what is known of a code: itself, or how it ends.
func lookup(code string) (rule, bool) {
	if r, ok := rules[code]; ok {
		return r, true
	}
	for _, e := range endings {
		if strings.HasSuffix(code, e.suffix) {
			return e.rule, true
		}
	}
	return rule{}, false
}

// words puts the call into a rule's sentences.
func (c Call) words(code, says string) *strings.Replacer {
	return strings.NewReplacer(
		"{code}", code,
		"{says}", quote(says),
		"{action}", cmp.Or(c.Action, "the call"),
		"{region}", cmp.Or(c.Region, "REGION"),
		"{place}", c.place(),
		"{type}", cmp.Or(c.Instance, "TYPE"),
		"{thetype}", cmp.Or(c.Instance, "this instance type"),
		"{machines}", c.machines(),
		"{vcpus}", c.vcpus(),
		"{id}", cmp.Or(c.ID, "ID"),
		"{theid}", cmp.Or(c.ID, "of that name"),
		"{market}", c.market(),
		"{raise}", RaiseQuota(c.Region, c.Quota, c.Count*c.VCPUs, c.Spot),
		"{doubt}", c.doubtful(),
		"{profile}", profileFlag(),
	)
}

// place is the zone or else the region, as part of a sentence.
func (c Call) place() string { return cmp.Or(c.Zone, c.Region, "this region") }

func (c Call) market() string {
	if c.Spot {
		return "spot"
	}
	return "on-demand"
}

func (c Call) machines() string {
	switch {
	case c.Instance == "":
		return c.market() + " machines"
	case c.Count == 0:
		return c.market() + " " + c.Instance
	}
	return fmt.Sprintf("%d × %s (%s)", c.Count, c.Instance, c.market())
}

// vcpus says how many virtual processors are asked for.
func (c Call) vcpus() string {
	switch {
	case c.Count == 0 || c.VCPUs == 0:
		return "more vCPUs than are left"
	case c.Count == 1:
		return fmt.Sprintf("%d vCPUs", c.VCPUs)
	}
	return fmt.Sprintf("%d vCPUs (%d × %d)", c.Count*c.VCPUs, c.Count, c.VCPUs)
}

// changes reports whether a call makes or removes something.
func (c Call) changes() bool {
	if c.Dry {
		return false
	}
	for _, verb := range []string{"Describe", "Get", "List", "Head", "Simulate"} {
		if strings.HasPrefix(c.Action, verb) {
			return false
		}
	}
	return true
}

func (c Call) doubtful() string {
	if c.changes() {
		return ", and nobody knows yet whether it was carried out"
	}
	return ""
}

// RaiseQuota is the command that asks AWS for a higher quota. Without a code
// it is the one that finds the code.
func RaiseQuota(region, code string, vcpus int, spot bool) string {
	region = cmp.Or(region, "REGION")
	if code == "" {
		name := "Running On-Demand"
		if spot {
			name = "Spot Instance Requests"
		}
		return fmt.Sprintf(`aws service-quotas list-service-quotas --service-code ec2 --region %s --query "Quotas[?contains(QuotaName,'%s')].[QuotaCode,QuotaName,Value]" --output table`, region, name)
	}
	want := "VCPUS"
	if vcpus > 0 {
		want = strconv.Itoa(vcpus)
	}
	return fmt.Sprintf("aws service-quotas request-service-quota-increase --service-code ec2 --quota-code %s --desired-value %s --region %s", code, want, region)
}

var limitSaid = pattern.New(`limit of (\d+)`)

// quota tells an account that may run nothing from one that may run too little.
func (p *Problem) quota(says string, c Call) {
	m := limitSaid.FindStringSubmatch(says)
	if m == nil {
		return
	}
	limit, err := strconv.Atoi(m[1])
	if err != nil {
		return
	}
	p.Next = RaiseQuota(c.Region, c.Quota, limit+c.Count*c.VCPUs, c.Spot)
	if limit == 0 {
		p.Cause = fmt.Sprintf("this account may not run any %s machine like %s in %s: the quota is 0 vCPUs, as in every new account",
			c.market(), cmp.Or(c.Instance, "this"), cmp.Or(c.Region, "this region"))
		return
	}
	p.Cause += fmt.Sprintf(" (the quota is %d vCPUs)", limit)
}

var (
	permissionSaid = pattern.New(`not authorized to perform: ([a-z0-9-]+:[A-Za-z0-9]+)`)
	encodedSaid    = pattern.New(`(?i)encoded authorization failure message:\s*([A-Za-z0-9_-]+)`)
)

// permission names the permission that is missing, and how AWS tells the rest.
// A launch may be refused for want of another permission than its own.
func (p *Problem) permission(says string, c Call) {
	if m := permissionSaid.FindStringSubmatch(says); m != nil {
		p.Missing = m[1]
	} else if c.Action != "" {
		p.Missing = service(p.Err) + ":" + c.Action
	}
	if p.Missing != "" {
		p.Cause = fmt.Sprintf("these credentials have no permission for %s in %s", p.Missing, cmp.Or(c.Region, "this region"))
		p.Next = "let an administrator allow " + p.Missing + " (docs/aws.md has the least policy)"
	}
	if strings.Contains(says, "service control policy") {
		p.Cause += ": a service control policy of the organization forbids it"
	} else if strings.Contains(says, "explicit deny") {
		p.Cause += ": a policy denies it explicitly"
	}
	if m := encodedSaid.FindStringSubmatch(says); m != nil {
		p.Next += "; AWS tells more by: aws sts decode-authorization-message --query DecodedMessage --output text --encoded-message " + m[1]
	}
}
