package kubernetes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
)

// kubeconfig writes one whose context lab leads to a server.
func kubeconfig(t *testing.T, server, authority string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: lab
clusters: [{name: c, cluster: {server: %q, certificate-authority: %q}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: lab, context: {cluster: c, user: u}}]
`, server, authority)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
}

// doorTo is the way to the cluster that a server stands for.
func doorTo(t *testing.T, server string) (place, *door) {
	t.Helper()
	kubeconfig(t, server, "")
	at, err := locate(options.Machines{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := New().open(at)
	if err != nil {
		t.Fatal(err)
	}
	return at, d
}

// lifeAt is a life with a job, named run, that was made on the cluster of a server.
func lifeAt(t *testing.T, server string, r ref) (cloud.Life, ref, *door) {
	t.Helper()
	at, d := doorTo(t, server)
	at.Cluster = clusterOf(d.config)
	r.place, r.Name = at, "run"
	life := cloud.Life{Name: "c", ID: "life", Dir: t.TempDir()}
	if err := noteRef(life, "run", r); err != nil {
		t.Fatal(err)
	}
	return life, r, d
}

// authority is a certificate of an authority, as a file.
func authority(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// A context is a name, and names are used again: what is not found in another
// cluster is not gone.
func TestAContextThatLeadsElsewhereProvesNothingGone(t *testing.T) {
	life, _, _ := lifeAt(t, "https://127.0.0.1:1", ref{Kind: options.Job})
	kubeconfig(t, "https://127.0.0.1:2", "")
	r, err := New().Down(t.Context(), life, func(int, string) {})
	if err == nil || !strings.Contains(err.Error(), "context lab leads to another cluster now, https://127.0.0.1:2; what was made is on https://127.0.0.1:1") {
		t.Errorf("%v", err)
	}
	if len(r.Resources) != 1 || r.Resources[0].State != cloud.Unknown {
		t.Errorf("%+v", r.Resources)
	}
}

func TestAClusterIsKnownByItsAddressOrItsAuthority(t *testing.T) {
	same, other := authority(t, "one\n"), authority(t, "two\n")
	for _, c := range []struct {
		server, authority string
		same              bool
	}{
		{"https://a:1", other, true}, {"https://b:1", same, true}, {"https://b:1", other, false}, {"https://b:1", "", false}, {"https://a:1/k8s/clusters/c2", same, false},
	} {
		is := make([]string, 2)
		for i, at := range [][2]string{{"https://a:1", same}, {c.server, c.authority}} {
			kubeconfig(t, at[0], at[1])
			config, err := configOf("lab")
			if err != nil {
				t.Fatal(err)
			}
			is[i] = clusterOf(config)
		}
		if sameCluster(is[0], is[1]) != c.same {
			t.Errorf("%q is %q: %v is wrong", is[1], is[0], !c.same)
		}
	}
}

// The plan shows a rank for each GPU of a pod: so many are laid out.
func TestAPodHasARankForEachOfItsGPUs(t *testing.T) {
	var p cloud.JobProvider = New()
	of, knows := p.(cloud.Shaper)
	if !knows {
		t.Fatal("what a pod gets is not known when its ranks are laid out")
	}
	if got := of.Shape(cloud.Spec{Own: &options.Machines{GPUs: 4, CPUs: 8}}); got.GPUs != 4 || got.Cores != 8 {
		t.Errorf("%+v", got)
	}
}
