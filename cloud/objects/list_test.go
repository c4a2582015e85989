package objects

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAPlaceIsListedAsFilesAndReadBySignedAddresses(t *testing.T) {
	address, _ := server(t)
	lay(t, open(t, address), "set/a.csv", "set/deep/b c+ü.csv", "set/dir/", "set/both", "set/both/x", "set//twice", "set/../out", "setting/other")
	b := open(t, address+"/set/")
	l, err := b.List(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range l.Objects {
		got = append(got, o.Path)
		signed, err := b.Sign(t.Context(), o, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, signed, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(reply.Body)
		_ = reply.Body.Close()
		if err != nil || string(text) != "set/"+o.Path || o.Size != int64(len(text)) || o.ETag != reply.Header.Get("ETag") || o.Modified.IsZero() {
			t.Errorf("%+v is %q, %v", o, text, err)
		}
		if !strings.Contains(signed, "X-Amz-Signature=") || !strings.Contains(signed, "X-Amz-Expires=3600") {
			t.Errorf("the address is not signed for an hour: %s", signed)
		}
	}
	slices.Sort(got)
	slices.Sort(l.Unfit)
	if want := []string{"a.csv", "both/x", "deep/b c+ü.csv"}; !slices.Equal(got, want) {
		t.Errorf("it has %q", got)
	}
	if want := []string{"lab/set/../out", "lab/set//twice", "lab/set/both"}; !slices.Equal(l.Unfit, want) {
		t.Errorf("unfit are %q", l.Unfit)
	}
}

func TestOneObjectIsAPlaceToo(t *testing.T) {
	address, _ := server(t)
	lay(t, open(t, address), "a.csv", "a.csv.old")
	l, err := open(t, address+"/a.csv").List(t.Context(), 10)
	if err != nil || len(l.Objects) != 1 || l.Objects[0].Path != "a.csv" || l.Bytes() != 5 {
		t.Errorf("%+v %v", l, err)
	}
}

func TestWhatCanNotBeListedIsSaid(t *testing.T) {
	address, _ := server(t)
	lay(t, open(t, address), "many/1", "many/2", "many/3")
	for place, c := range map[string]struct {
		most int
		why  string
	}{
		"/none": {10, "there is no object at " + address + "/none"},
		"/many": {2, address + "/many has more than 2 objects"},
	} {
		if _, err := open(t, address+place).List(t.Context(), c.most); err == nil || !strings.Contains(err.Error(), c.why) {
			t.Errorf("%s: %v", place, err)
		}
	}
}
