package secretfile

import "testing"

// Whatever signs an address, or lets its holder in, is not shown; what says where it
// leads is. The signed ones are what boto3, google-cloud-storage, azure-storage-blob and
// CloudFront make.
func TestAnAddressIsShownWithoutWhatLetsItsHolderIn(t *testing.T) {
	for text, want := range map[string]string{
		"https://lab.s3.us-west-2.amazonaws.com/a%20b.tar?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20261124%2Fus-west-2%2Fs3%2Faws4_request&X-Amz-Date=20261124T000000Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Security-Token=Fwo&X-Amz-Signature=0123abcd": "https://lab.s3.us-west-2.amazonaws.com/a%20b.tar?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=…&X-Amz-Date=20261124T000000Z&X-Amz-Expires=3600&X-Amz-SignedHeaders=host&X-Amz-Security-Token=…&X-Amz-Signature=…",
		"https://lab.s3.amazonaws.com/a?AWSAccessKeyId=AKIA&Signature=x%3D&Expires=1":                              "https://lab.s3.amazonaws.com/a?AWSAccessKeyId=…&Signature=…&Expires=1",
		"https://lab.blob.core.windows.net/c/a.csv?sv=2024-11-04&se=2026-01-01T00%3A00%3A00Z&sr=b&sp=r&sig=abc%3D": "https://lab.blob.core.windows.net/c/a.csv?sv=2024-11-04&se=2026-01-01T00%3A00%3A00Z&sr=b&sp=r&sig=…",
		"https://storage.googleapis.com/b/a?X-Goog-Credential=x&X-Goog-Signature=y#part":                           "https://storage.googleapis.com/b/a?X-Goog-Credential=…&X-Goog-Signature=…#part",
		"https://d111.cloudfront.net/a?Expires=1&Policy=eyJ&Key-Pair-Id=K1":                                        "https://d111.cloudfront.net/a?Expires=1&Policy=…&Key-Pair-Id=…",
		"https://me:pass@word@example.org/a":                                                                       "https://…@example.org/a",
		"https://example.org?access_token=abc":                                                                     "https://example.org?access_token=…",
		"https://example.org/a?epoch=3&monkey=1":                                                                   "https://example.org/a?epoch=3&monkey=1",
		"https://example.org/a@b?x":                                                                                "https://example.org/a@b?x",
		"s3://lab/train/":                                                                                          "s3://lab/train/",
		"data/train.csv?token=no-address":                                                                          "data/train.csv?token=no-address",
	} {
		if got := Address(text); got != want {
			t.Errorf("%s\n is shown as %s", text, got)
		}
	}
}
