package skeleton

import "testing"

func TestSkeletonsLeaveOutNumbersAndNothingElse(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"step 9 loss 0.5", "step 10 loss 12.25", true},
		{"2024-05-01 12:30:45,123 INFO step 5", "2024-05-12 02:00:00,999 INFO step 123456789", true},
		{"12", "3456789012345", true},
		{"loss", "lose", false},
		{"acc@1 5", "acc@5 5", false},
		{"top-1: 5", "top-5: 6", false},
		{"top-123: 5", "top-500: 6", true},
		{"layer_2 0.1", "layer_3 0.1", false},
		{"abcdefgh1", "abcdefgh", false},
		{"12345678abcdefghijkl 1", "1abcdefghijkl 99", true},
		{"a 1 b", "a 1 b ", false},
		{"a 1 2", "a 12", false},
		{"1/2", "3/44", true},
	} {
		var f Skeleton
		if same := f.Of(c.a) == f.Of(c.b); same != c.same {
			t.Errorf("%q and %q have the same skeleton: %v", c.a, c.b, same)
		}
	}
}

func TestSkeletonsNoteWhereNumbersBegin(t *testing.T) {
	var f Skeleton
	f.Of("acc@1 12 abcdefgh 7 1234567890 top-5 x1")
	want := []uint16{6, 18, 20}
	if f.N != len(want) {
		t.Fatalf("%d numbers: %v", f.N, f.runs[:f.N])
	}
	for i, at := range want {
		if f.runs[i] != at {
			t.Errorf("number %d begins at %d instead of %d", i, f.runs[i], at)
		}
	}
}
