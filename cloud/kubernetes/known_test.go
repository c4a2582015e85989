package kubernetes

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestTheKubeconfigCompletesContextsAndNamespaces(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	text := `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "https://192.0.2.1"}}], contexts: [
  {name: lab, context: {cluster: c, namespace: team-b}}, {name: home, context: {cluster: c}},
  {name: cloud, context: {cluster: c, namespace: team-a}}, {name: old, context: {cluster: c, namespace: team-a}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	p := new(Provider)
	for key, want := range map[string][]string{"machines.context": {"cloud", "home", "lab", "old"}, "machines.namespace": {"team-a", "team-b"}, "machines.image": nil} {
		if got := p.Known(key); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	if got := p.Known("machines.context"); len(got) != 0 {
		t.Errorf("without a kubeconfig: %q", got)
	}
}
