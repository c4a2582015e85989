package awsapi

import "testing"

func TestAPrincipalIsTheSameInTheNextSession(t *testing.T) {
	for arn, want := range map[string]string{
		"arn:aws:sts::123456789012:assumed-role/researcher/aws-go-sdk-1763985600": "arn:aws:sts::123456789012:assumed-role/researcher",
		"arn:aws-us-gov:sts::123456789012:assumed-role/a-b/botocore-session-1":    "arn:aws-us-gov:sts::123456789012:assumed-role/a-b",
		"arn:aws:sts::123456789012:assumed-role/researcher":                       "arn:aws:sts::123456789012:assumed-role/researcher",
		"arn:aws:sts::123456789012:assumed-role/box/i-0123456789abcdef0":          "arn:aws:sts::123456789012:assumed-role/box",
		"arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_ML_0123/ann@a.org": "arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_ML_0123/ann@a.org",
		"arn:aws:iam::123456789012:user/lab/ann":                                  "arn:aws:iam::123456789012:user/lab/ann",
		"arn:aws:sts::123456789012:federated-user/ann":                            "arn:aws:sts::123456789012:federated-user/ann",
		"arn:aws:iam::123456789012:root":                                          "arn:aws:iam::123456789012:root",
		"":                                                                        "",
	} {
		if got := Principal(arn); got != want {
			t.Errorf("%s: %s, want %s", arn, got, want)
		}
		if got := Principal(Principal(arn)); got != want {
			t.Errorf("%s twice: %s", arn, got)
		}
	}
}
