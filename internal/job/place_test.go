package job

import "testing"

// An engine with several ports writes those behind the first with their distance.
func TestPlacesArePutWhereTheyStand(t *testing.T) {
	p := Placing([]string{"a", "b"}, 29500)
	for text, want := range map[string]string{
		HostOf(0) + ":" + Port: "a:29500",
		HostOf(0) + ":" + Port + "," + HostOf(1) + ":" + Port + "+1,x": "a:29500,b:29501,x",
		`["` + Port + `+12"]` + Port:                                   `["29512"]29500`,
		Port + "+":                                                     "29500+", Port + "+x" + HostOf(2): "29500+x" + HostOf(2), "none": "none", "": "",
	} {
		if got := p.Replace(text); got != want {
			t.Errorf("%q: %q, not %q", text, got, want)
		}
	}
}
