//go:build unix

package sagemaker

import (
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/sagemaker/options"
	"github.com/dlwb/dlwb/internal/fakesagemaker"
)

// sole is the entry of a kind in the ledger of a life.
func sole(t *testing.T, life cloud.Life, kind string) cloud.Entry {
	t.Helper()
	all, err := life.Ledger.Entries()
	if err != nil {
		t.Fatal(err)
	}
	var found []cloud.Entry
	for _, e := range all {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	if len(found) != 1 {
		t.Fatalf("the ledger has %d of %s: %+v", len(found), kind, all)
	}
	return found[0]
}

// A job that was made while its reply was lost is never on record as refused,
// whatever a later call would say of its quota.
func TestALostReplyIsNoRefusal(t *testing.T) {
	for _, code := range []string{"ThrottlingException", "ResourceLimitExceeded"} {
		t.Run(code, func(t *testing.T) {
			f, p, life := account(t)
			f.Cut(func(call string, nth int) bool { return call == "CreateTrainingJob" && nth == 1 })
			f.Answer(func(call string, nth int) *fakesagemaker.Error {
				if call == "CreateTrainingJob" && nth > 1 {
					return &fakesagemaker.Error{Status: 400, Code: code, Says: "too many"}
				}
				return nil
			})
			made, err := p.Submit(t.Context(), life, jobThat(t, "r-lost", "print(1)\n", options.Machines{}), noStep, quiet)
			if err != nil || made.Ref == "" {
				t.Errorf("%+v, %v", made, err)
			}
			if n := len(f.Calls("CreateTrainingJob")); n != 1 {
				t.Errorf("the job was asked for %d times", n)
			}
			if e := sole(t, life, kindJob); !e.Open() || e.ID == "" {
				t.Errorf("the ledger has %+v, and the jobs are %q", e, f.Jobs())
			}
		})
	}
}

// Only a refusal that nothing speaks against closes the entry of a job: a fault of
// the service is none, and one that can't be checked proves nothing.
func TestOnlyAProvenRefusalClosesTheEntry(t *testing.T) {
	for name, c := range map[string]struct {
		create, look fakesagemaker.Error
		open         bool
	}{
		"refused":            {create: fakesagemaker.Error{Status: 400, Code: "ResourceLimitExceeded", Says: "quota"}},
		"refused, unseen":    {create: fakesagemaker.Error{Status: 400, Code: "ResourceLimitExceeded", Says: "quota"}, look: fakesagemaker.Error{Status: 400, Code: "AccessDeniedException"}, open: true},
		"a fault":            {create: fakesagemaker.Error{Status: 503, Code: "ThrottlingException", Says: "slow down"}, open: true},
		"a fault of a quota": {create: fakesagemaker.Error{Status: 500, Code: "ResourceLimitExceeded", Says: "quota"}, open: true},
		"the name is in use": {create: fakesagemaker.Error{Status: 400, Code: "ResourceInUse", Says: "in use"}, open: true},
	} {
		t.Run(name, func(t *testing.T) {
			f, p, life := account(t)
			f.Answer(func(call string, _ int) *fakesagemaker.Error {
				switch {
				case call == "CreateTrainingJob":
					return &c.create
				case call == "DescribeTrainingJob" && c.look.Code != "":
					return &c.look
				}
				return nil
			})
			if made, err := p.Submit(t.Context(), life, jobThat(t, "r-no", "print(1)\n", options.Machines{}), noStep, quiet); err == nil {
				t.Errorf("a refused job is %+v", made)
			}
			if e := sole(t, life, kindJob); e.Open() != c.open || len(f.Calls("CreateTrainingJob")) != 1 {
				t.Errorf("after %d calls the ledger has %+v", len(f.Calls("CreateTrainingJob")), e)
			}
		})
	}
}
