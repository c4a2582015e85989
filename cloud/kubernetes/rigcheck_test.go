//go:build linux

package kubernetes

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/internal/kuberig"
)

// What would keep a job from running is said before, each in a sentence that names
// it, and soon.
func TestEachObstacleIsNamedBeforeWithinTenSeconds(t *testing.T) {
	c := realCluster(t)
	two := func(m options.Machines) cloud.Spec { return cloud.Spec{Name: "test", Count: 2, Own: &m} }
	for _, k := range []struct {
		name    string
		spec    cloud.Spec
		prepare func(t *testing.T)
		want    []string
	}{
		{"nothing in the way", two(options.Machines{GPUs: 1}), nil, []string{"✓ cluster", "✓ rights", "✓ gpus: the nodes have 4 nvidia.com/gpu", "✓ dry run: the cluster takes the PyTorchJob and its pods"}},
		{"no such context", two(options.Machines{Context: "tenent"}), nil, []string{`✗ context: there is no context "tenent"`, `did you mean "tenant"?`}},
		{"credentials", two(options.Machines{Context: "nobody"}), nil, []string{"✗ cluster: the cluster does not know who asks: the credentials of context nobody are not valid"}},
		{"nobody there", two(options.Machines{}), unreachable, []string{"✗ cluster: the API server https://127.0.0.1:1 can't be reached"}},
		{"no namespace", two(options.Machines{Namespace: "nosuch"}), nil, []string{"✗ namespace: there is no namespace nosuch", "kubectl create namespace nosuch", "there are default, "}},
		{"no rights", two(options.Machines{Context: "tenant", Kind: options.PyTorchJob, GPUs: 1}), func(t *testing.T) { c.Apply(t, namespaceTeam) },
			[]string{"✗ rights: you may not create pytorchjobs.kubeflow.org", "create configmaps", "the nodes are not visible to you"}},
		{"operator dead", two(options.Machines{Kind: options.PyTorchJob}), func(t *testing.T) { c.Apply(t, deadOperator) }, []string{"✗ operator: nobody acts on a PyTorchJob: training-operator in namespace kubeflow has no pod that is ready", "machines.kind: job"}},
		{"operator hangs", two(options.Machines{Kind: options.PyTorchJob}), func(t *testing.T) {
			c.Signal(t, "training-operator", syscall.SIGSTOP)
			t.Cleanup(func() { c.Signal(t, "training-operator", syscall.SIGCONT) })
		}, []string{"✗ dry run: the cluster does not judge a PyTorchJob within", "training-operator"}},
		{"more GPUs than a node has", two(options.Machines{GPUs: 8}), nil, []string{"✗ gpus: each pod asks for 8 GPUs, and no node has more than 4"}},
		{"more GPUs than there are", cloud.Spec{Name: "test", Count: 5, Own: &options.Machines{GPUs: 1}}, nil, []string{"✗ gpus: 4 pods of 1 GPU fit on the nodes, were they all free, and the job has 5"}},
		{"no such GPU", two(options.Machines{GPUs: 1, GPUResource: "amd.com/gpu"}), nil, []string{"✗ gpus: no node gives out amd.com/gpu"}},
		{"no such label", two(options.Machines{GPUs: 1, NodeSelector: map[string]string{"a": "b"}}), nil, []string{"✗ gpus: no node has the labels of machines.node_selector"}},
		{"quota", two(options.Machines{Namespace: "team", GPUs: 1}), func(t *testing.T) { c.Apply(t, namespaceTeam); c.Apply(t, quotaTeam); time.Sleep(time.Second) },
			[]string{"✗ quota: 2 pods need 2 of requests.nvidia.com/gpu, and quota gpus allows 1 in all"}},
		{"policy of pods", two(options.Machines{Namespace: "strict", Volumes: []string{"host/data:/data"}}), func(t *testing.T) { c.Apply(t, namespaceStrict) }, []string{"✗ dry run: the cluster refuses its pods", "violates PodSecurity"}},
		{"priority class", two(options.Machines{Priority: "nopc"}), nil, []string{"✗ dry run: the cluster refuses its pods", "no PriorityClass with name nopc"}},
		{"pull secret", two(options.Machines{PullSecrets: []string{"registry"}}), nil, []string{"✗ pull secret: there is no secret registry in namespace default"}},
		{"claim", two(options.Machines{Volumes: []string{"data:/data"}}), nil, []string{"✗ volume: there is no claim data in namespace default"}},
		{"queue", two(options.Machines{Queue: "gpux"}), func(t *testing.T) { c.Apply(t, queues) }, []string{"✗ queue: there is no queue gpux in namespace default", "did you mean gpus?"}},
		{"sidecar", two(options.Machines{Kind: options.Job}), func(t *testing.T) { inject(t, c) }, []string{"✗ sidecar: the cluster puts istio-proxy into each pod"}},
		{"restricted pods", two(options.Machines{Namespace: "locked", RunAs: 1000}), func(t *testing.T) { c.Apply(t, fmt.Sprintf(namespaceRestricted, "locked")) }, []string{"✓ dry run: the cluster takes the PyTorchJob"}},
		{"root where it is forbidden", two(options.Machines{Namespace: "bolted"}), func(t *testing.T) { c.Apply(t, fmt.Sprintf(namespaceRestricted, "bolted")) }, []string{"✗ dry run: the cluster refuses its pods", "machines.run_as"}},
		{"limits by default", two(options.Machines{Namespace: "limited", CPUs: 4}), func(t *testing.T) { c.Apply(t, limitedNamespace) }, []string{"✓ dry run: the cluster takes the PyTorchJob", "limits the memory of each pod to 512Mi"}},
		{"runtime", two(options.Machines{Kind: options.TrainJob, Runtime: "nope"}), nil, []string{"✗ dry run: the cluster refuses the TrainJob", "nope"}},
	} {
		t.Run(k.name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", c.Kubeconfig)
			if k.prepare != nil {
				k.prepare(t)
			}
			began := time.Now()
			pre := New().Check(t.Context(), k.spec)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %s", took)
			}
			var lines []string
			for _, f := range pre.Findings {
				lines = append(lines, fmt.Sprintf("%s %s: %s; %s", f.Mark(), f.What, f.Text, f.Next))
			}
			text := strings.Join(lines, "\n")
			for _, want := range k.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is not in\n%s", want, text)
				}
			}
			if strings.HasPrefix(k.want[0], "✓") == strings.Contains(text, "✗") {
				t.Errorf("it says\n%s", text)
			}
		})
	}
}

// unreachable has the kubeconfig name a port where nobody is.
func unreachable(t *testing.T) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	text := `{"apiVersion": "v1", "kind": "Config", "current-context": "x", "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:1"}}],
"users": [{"name": "x", "user": {"token": "x"}}], "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
}

const (
	namespaceTeam       = "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"
	namespaceStrict     = "apiVersion: v1\nkind: Namespace\nmetadata: {name: strict, labels: {pod-security.kubernetes.io/enforce: baseline}}\n"
	namespaceRestricted = "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: restricted}}\n"
	limitedNamespace    = "apiVersion: v1\nkind: Namespace\nmetadata: {name: limited}\n---\napiVersion: v1\nkind: LimitRange\nmetadata: {name: small, namespace: limited}\nspec: {limits: [{type: Container, default: {cpu: 500m, memory: 512Mi}}]}\n"
	quotaTeam           = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: gpus, namespace: team}\nspec: {hard: {requests.nvidia.com/gpu: '1'}}\n"
	deadOperator        = `apiVersion: apps/v1
kind: Deployment
metadata: {name: training-operator, namespace: kubeflow, labels: {control-plane: kubeflow-training-operator}}
spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: x, image: x}]}}}
`
	queues = `apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 1}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: gpus, namespace: default}
spec: {clusterQueue: all}
`
)

// inject has the cluster put a proxy into each pod, as a service mesh does.
func inject(t *testing.T, c *kuberig.Cluster) {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		var asked struct{ Request struct{ UID string } }
		_ = json.Unmarshal(text, &asked)
		patch := base64.StdEncoding.EncodeToString([]byte(`[{"op": "add", "path": "/spec/containers/-", "value": {"name": "istio-proxy", "image": "istio"}}]`))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": {"uid": %q, "allowed": true, "patchType": "JSONPatch", "patch": %q}}`, asked.Request.UID, patch)
	}))
	t.Cleanup(server.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	c.Apply(t, fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: mesh}
webhooks: [{name: mesh.test.io, admissionReviewVersions: [v1], sideEffects: None, clientConfig: {url: %q, caBundle: %s}, rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]
`, server.URL, ca))
	time.Sleep(time.Second) // the API server hears of it
}

const tenantRole = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: trains, namespace: team}
rules:
- {apiGroups: [kubeflow.org], resources: [pytorchjobs], verbs: ["*"]}
- {apiGroups: [""], resources: [configmaps], verbs: [create, get, list, delete, patch]}
- {apiGroups: [""], resources: [pods], verbs: [get, list, watch, delete]}
- {apiGroups: [""], resources: [pods/log], verbs: [get]}
- {apiGroups: [""], resources: [pods/exec], verbs: [create, get]}
- {apiGroups: [""], resources: [events], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: trains, namespace: team}
subjects: [{kind: User, name: tenant, apiGroup: rbac.authorization.k8s.io}]
roleRef: {kind: Role, name: trains, apiGroup: rbac.authorization.k8s.io}
`

// Rights on secrets and on services are needed by runs that get some: others run, and
// are removed with proof, without them.
func TestWhoMayNotMakeSecretsRunsWithoutThem(t *testing.T) {
	c := realCluster(t)
	c.Apply(t, namespaceTeam)
	c.Apply(t, tenantRole)
	m := options.Machines{Context: "tenant", Kind: options.PyTorchJob}
	for env, want := range map[bool]string{false: "✓ rights: you may do all that a run needs", true: "✗ rights: you may not create secrets, get secrets, list secrets, delete secrets"} {
		found := New().Check(t.Context(), cloud.Spec{Name: "test", Count: 1, Own: &m, HasEnv: env}).Findings
		said := false
		for _, f := range found {
			said = said || strings.HasPrefix(fmt.Sprintf("%s %s: %s", f.Mark(), f.What, f.Text), want)
		}
		if !said {
			t.Errorf("with variables %v: %+v", env, found)
		}
	}
	life, j := jobOf(t, m, 1, "echo through")
	j.Env = nil
	r := handIn(t, life, j)
	r.await()
	if log, _ := r.log(0, ""); log != "through\n" {
		t.Errorf("%q", log)
	}
	if receipt := r.down(); !hasKind(receipt, "pytorchjob") {
		t.Errorf("%+v", receipt.Resources)
	}
}
