//go:build unix

package sagemaker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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

const sleeper = "import time\ntime.sleep(120)\n"

// running is a job that runs, in the ledger of a life.
func running(t *testing.T, p *Provider, life cloud.Life) string {
	t.Helper()
	made, err := p.Submit(t.Context(), life, jobThat(t, "r-live", sleeper, options.Machines{}), noStep, quiet)
	if err != nil {
		t.Fatal(err)
	}
	return made.Ref
}

// stays looks whether a receipt claims nothing, and the entries stay open.
func stays(t *testing.T, p *Provider, life cloud.Life, says string) {
	t.Helper()
	r, err := p.Down(t.Context(), life, quiet)
	if err == nil || !strings.Contains(err.Error(), says) || r.Proven() || r.ProcessesLeft == 0 {
		t.Errorf("the receipt is %+v, %v", r, err)
	}
	for _, res := range r.Resources {
		if res.Kind == kindJob && res.State != cloud.Unknown || res.State == cloud.Gone {
			t.Errorf("the receipt says %+v", res)
		}
	}
	all, _ := life.Ledger.Entries()
	for _, e := range all {
		if !e.Open() {
			t.Errorf("the ledger has %s closed: %s", e.Token, e.Proof)
		}
	}
}

// Who has the credentials of another account sees no job, and proves nothing by that;
// neither does who can't be told apart.
func TestAnotherAccountProvesNothing(t *testing.T) {
	for name, c := range map[string]struct{ caller, refused, says string }{
		"another": {caller: "210987654321", says: "is in account 123456789012, and your credentials are of 210987654321"},
		"unknown": {refused: "ExpiredToken", says: "is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			f, p, life := account(t)
			at := running(t, p, life)
			for i := range life.Ledger.(*book).all {
				life.Ledger.(*book).all[i].IntentAt = time.Now().Add(-time.Hour)
			}
			there, elsewhere, _ := account(t)
			there.Caller = c.caller
			there.Answer(func(call string, _ int) *fakesagemaker.Error {
				if call == "GetCallerIdentity" && c.refused != "" {
					return &fakesagemaker.Error{Status: 403, Code: c.refused, Says: "no"}
				}
				return nil
			})
			if found, err := elsewhere.Find(t.Context(), life, "r-live", cloud.Untold); err == nil {
				t.Errorf("found is %+v", found)
			}
			if state, err := elsewhere.Open(life, at)[0].State(t.Context()); err == nil {
				t.Errorf("its state is %+v", state)
			}
			if _, err := elsewhere.Submit(t.Context(), life, jobThat(t, "r-live", sleeper, options.Machines{}), noStep, quiet); err == nil {
				t.Error("it was submitted again")
			}
			stays(t, elsewhere, life, c.says)
			for _, call := range there.Calls("") {
				if call.Name != "GetCallerIdentity" {
					t.Errorf("the other account was asked for %s", call.Name)
				}
			}
			if r, err := p.Down(t.Context(), life, quiet); err != nil || !r.Proven() || len(f.Running()) > 0 {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// An entry that was not resolved is no other case; and one of a time when accounts
// were not noted has it in the ARN, or proves nothing.
func TestAnEntryWithoutAnAccountOrAnARNProvesNothingElsewhere(t *testing.T) {
	_, p, life := account(t)
	running(t, p, life)
	all := life.Ledger.(*book).all
	for i := range all {
		all[i].IntentAt = time.Now().Add(-time.Hour)
	}
	arn := all[1].ID
	all[1].ID = ""
	other, elsewhere, _ := account(t)
	other.Caller = "210987654321"
	stays(t, elsewhere, life, "is in account")
	for i := range all {
		var r ref
		_ = json.Unmarshal(all[i].Detail, &r)
		r.Account = ""
		all[i].Detail = json.RawMessage(r.String())
	}
	stays(t, elsewhere, life, "is not on record")
	stays(t, p, life, "is not on record")
	all[1].ID = arn
	stays(t, elsewhere, life, "is in account 123456789012")
}

// SageMaker keeps its jobs for ever: one that it has made and does not show is not
// gone.
func TestAJobThatWasMadeAndIsNotShownIsUnknown(t *testing.T) {
	f, p, life := account(t)
	running(t, p, life)
	f.Answer(func(call string, _ int) *fakesagemaker.Error {
		if call == "DescribeTrainingJob" {
			return &fakesagemaker.Error{Status: 400, Code: "ValidationException", Says: "Requested resource not found."}
		}
		return nil
	})
	if found, err := p.Find(t.Context(), life, "r-live", cloud.Untold); err == nil {
		t.Errorf("found is %+v", found)
	}
	stays(t, p, life, "a job does not vanish")
	f.Answer(nil)
	if r, err := p.Down(t.Context(), life, quiet); err != nil || !r.Proven() || len(f.Running()) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A job of the run's name that carries the tag of another life, or whose tags can't
// be read, is not resolved, stopped or attached to.
func TestAJobOfAnotherLifeIsLeftAlone(t *testing.T) {
	for name, answer := range map[string]func(string, int) *fakesagemaker.Error{
		"another life": func(string, int) *fakesagemaker.Error { return nil },
		"tags unread": func(call string, _ int) *fakesagemaker.Error {
			if call == "ListTags" {
				return &fakesagemaker.Error{Status: 400, Code: "AccessDeniedException", Says: "no"}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, p, theirs := account(t)
			at := running(t, p, theirs)
			f.Answer(answer)
			r, err := readRef(at)
			if err != nil {
				t.Fatal(err)
			}
			mine := cloud.Life{Name: "d", ID: "ba9876543210", Began: time.Now(), Ledger: &book{}}
			if err := mine.Ledger.Intend(kindJob, r.Name, r); err != nil { // and the call was never sent
				t.Fatal(err)
			}
			if found, err := p.Find(t.Context(), mine, "r-live", cloud.Untold); err == nil || found.Ref != "" {
				t.Errorf("found is %+v, %v", found, err)
			}
			if made, err := p.Submit(t.Context(), mine, jobThat(t, "r-live", sleeper, options.Machines{}), noStep, quiet); err == nil {
				t.Errorf("taken is %+v", made)
			}
			if _, err := p.Open(mine, at)[0].Stop(t.Context(), 0, "asked"); err == nil {
				t.Error("it was stopped")
			}
			if receipt, err := p.Down(t.Context(), mine, quiet); err == nil || receipt.Proven() {
				t.Errorf("%+v, %v", receipt, err)
			}
			if e := sole(t, mine, kindJob); !e.Open() || e.ID != "" {
				t.Errorf("the ledger has %+v", e)
			}
			if f.Status(r.Name) != "InProgress" || len(f.Calls("StopTrainingJob"))+len(f.Calls("AddTags")) > 0 {
				t.Errorf("the job of another is %s", f.Status(r.Name))
			}
			f.Answer(nil)
			if r, err := p.Down(t.Context(), theirs, quiet); err != nil || !r.Proven() {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
}

// A job that has ended costs nothing: its end is proven also to who may not read tags.
func TestAJobThatHasEndedIsGoneWhoeverMayReadItsTags(t *testing.T) {
	f, p, life := account(t)
	at := running(t, p, life)
	if _, err := p.Open(life, at)[0].Stop(t.Context(), 0, "asked"); err != nil {
		t.Fatal(err)
	}
	r, err := readRef(at)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); f.Status(r.Name) != "Stopped"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it is", f.Status(r.Name))
		}
	}
	f.Answer(func(call string, _ int) *fakesagemaker.Error {
		if call == "ListTags" {
			return &fakesagemaker.Error{Status: 400, Code: "AccessDeniedException", Says: "no"}
		}
		return nil
	})
	if receipt, err := p.Down(t.Context(), life, quiet); err != nil || !receipt.Proven() {
		t.Errorf("%+v, %v", receipt, err)
	}
}

// What S3 fails at says nothing of the bucket: nothing is wrong with the profile.
func TestABucketThatS3DoesNotTellOfIsNotChecked(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("Action") == "GetCallerIdentity" {
			_, _ = fmt.Fprint(w, "<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::111122223333:user/ada</Arn><UserId>A</UserId><Account>111122223333</Account></GetCallerIdentityResult></GetCallerIdentityResponse>")
			return
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(s.Close)
	_, p, _ := account(t)
	t.Setenv("AWS_ENDPOINT_URL", s.URL)
	pre := p.Check(t.Context(), cloud.Spec{Count: 1, Instance: "ml.m5.large", Regions: []string{"us-east-1"}, Own: &options.Machines{Role: "Training"}})
	for _, f := range pre.Findings {
		if f.What == "bucket" {
			if f.Result() != cloud.NotChecked || !strings.Contains(f.Text, "code: ") {
				t.Errorf("%s %+v", f.Mark(), f)
			}
			return
		}
	}
	t.Errorf("nothing is said of the bucket: %+v", pre.Findings)
}
