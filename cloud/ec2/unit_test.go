package ec2

import (
	"testing"
	"time"

	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/door"
)

func setBehaviour(t *testing.T, ec2 client, id, behaviour string) {
	t.Helper()
	_, err := ec2.ModifyInstanceAttribute(t.Context(), &awsec2.ModifyInstanceAttributeInput{InstanceId: &id,
		InstanceInitiatedShutdownBehavior: &types.AttributeValue{Value: &behaviour}})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSSHIsNeverOpenToEverybody(t *testing.T) {
	for in, want := range map[string]string{"203.0.113.7": "203.0.113.7/32", "203.0.113.9/24": "203.0.113.0/24", "2001:db8::1": "2001:db8::1/128",
		"0.0.0.0/0": "", "::/0": "", "10.0.0.0/7": "", "": "", "nonsense": ""} {
		got, err := door.ParseOne(in)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q is %v, %v", in, got, err)
		}
	}
}

func TestTagsHaveOnlyWhatTagsMayHave(t *testing.T) {
	if got := tagValue("a<b>\x1b[31m'é"); got != "a_b___31m_é" {
		t.Errorf("%q", got)
	}
}

// The clock of the laptop was set back while a machine ran that was replaced later.
func TestNoMachineGivesMoneyBack(t *testing.T) {
	began := time.Unix(1e9, 0)
	closed := began.Add(-10 * time.Hour)
	var r cloud.Receipt
	r.Resources = ended([]cloud.Entry{{Kind: kindInstances, ID: "i-1", IntentAt: began, ClosedAt: &closed, Detail: []byte(`{"nodes":[0],"machine":{"per_hour":4}}`)}})
	l := launch{Machine: cloud.Price{PerHour: 4}}
	if total(&r, began.AddDate(100, 0, 0)); len(r.Resources) != 1 || r.Cost != 0 || r.Lived != 0 || l.cost(time.Hour, 2*time.Hour) < 0 {
		t.Errorf("%+v; stopped for longer than it lived: %v", r, l.cost(time.Hour, 2*time.Hour))
	}
}
