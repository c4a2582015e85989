package planning

import (
	"strings"
	"testing"
)

func TestADraftHasTheKeysOfItsProvider(t *testing.T) {
	for name, c := range map[string]struct {
		provider, key, value string
		count                string
		want, wrong          string
	}{
		"names":            {provider: "hosts", key: "machines.hosts", value: "gpu1, ada@gpu2:2222", want: "hosts: [gpu1, 'ada@gpu2:2222']"},
		"a range":          {provider: "hosts", key: "machines.hosts", value: "gpu[1-3]", want: "gpu1"},
		"a mapping":        {provider: "hosts", key: "machines.hosts", value: "gpu1, {host: gpu2, gpus: [0, 1]}", want: "gpus: [0, 1]"},
		"none":             {provider: "hosts", key: "machines.hosts", value: " ", wrong: "machines.hosts"},
		"fewer than nodes": {provider: "hosts", key: "machines.hosts", value: "gpu1", count: "2", wrong: "machines.count"},
		"a word":           {provider: "slurm", key: "machines.partition", value: "gpu", count: "2", want: "partition: gpu"},
		"a number":         {provider: "slurm", key: "machines.gpus", value: "4", count: "1", want: "gpus: 4"},
		"no number":        {provider: "slurm", key: "machines.gpus", value: "four", count: "1", wrong: "machines.gpus"},
		"another's":        {provider: "hosts", key: "machines.partition", value: "gpu", wrong: "machines.hosts"},
	} {
		d := Draft{Dir: t.TempDir(), Name: "lm", Provider: c.provider, Count: c.count, Environment: "system", Engine: "auto", Command: "train.py"}
		d.SetOwn(c.key, c.value)
		text, err := d.Text()
		switch {
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: %v\n%s", name, err, text)
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v\n%s", name, err, text)
		case c.wrong == "" && !strings.Contains(strings.ReplaceAll(text, `"`, "'"), c.want):
			t.Errorf("%s: %q is not in\n%s", name, c.want, text)
		}
	}
}

func TestACopyOfADraftKeepsItsValues(t *testing.T) {
	var d Draft
	d.SetOwn("machines.hosts", "gpu1")
	had := d
	d.SetOwn("machines.hosts", "gpu2")
	if had.Own["machines.hosts"] != "gpu1" || d.Own["machines.hosts"] != "gpu2" {
		t.Errorf("%v and %v", had.Own, d.Own)
	}
}
