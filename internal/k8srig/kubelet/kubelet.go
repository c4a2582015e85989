// Package kubelet is a node of the rig: a kubelet, on virtual-kubelet, that runs
// the command of each container as a process of this machine, in a network, a
// process space and a file system of its own. It ignores images: the file system
// is this machine's, with the pod's volumes in it and a layer on top that goes with
// the container. Logs, exec, port-forward, exit codes and grace are real.
package kubelet

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"github.com/virtual-kubelet/virtual-kubelet/node"
	"github.com/virtual-kubelet/virtual-kubelet/node/api"
	"github.com/virtual-kubelet/virtual-kubelet/node/nodeutil"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Options say what node it is.
type Options struct {
	Kubeconfig, Node, Root string
	Port, GPUs             int
	Bridge                 string // the network between the pods
	Net                    string // its first three numbers: "10.244.7"
	Bin                    string // goes before PATH in the pods: an nvidia-smi
	LogMax                 int64  // bytes after which a log is rotated
}

// Kubelet runs the pods of one node.
type Kubelet struct {
	o      Options
	client kubernetes.Interface

	mu       sync.Mutex
	pods     map[string]*pod
	nextIP   int
	notify   func(*core.Pod)
	services []core.Service
	hosts    string
}

// pod is one that is to run here.
type pod struct {
	object     *core.Pod
	ip, ns     string // its address, and the name of its network namespace
	dir        string
	containers map[string]*container
	stopping   bool
}

func keyOf(namespace, name string) string { return namespace + "/" + name }

func sh(words ...string) error {
	out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%v: %w: %s", words, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// CreatePod begins a pod.
func (k *Kubelet) CreatePod(_ context.Context, object *core.Pod) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := keyOf(object.Namespace, object.Name)
	if _, is := k.pods[key]; is {
		return nil
	}
	k.nextIP++
	id := strings.ReplaceAll(string(object.UID), "-", "")
	p := &pod{object: object.DeepCopy(), ip: fmt.Sprintf("%s.%d", k.o.Net, k.nextIP%250+2), ns: "vk-" + id[:8] + id[len(id)-4:],
		dir: filepath.Join(k.o.Root, string(object.UID)), containers: map[string]*container{}}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	if err := k.network(p); err != nil {
		return err
	}
	k.pods[key] = p
	k.hosts = ""
	k.writeHosts()
	now := meta.Now()
	p.object.Status = core.PodStatus{Phase: core.PodPending, HostIP: "127.0.0.1", PodIP: p.ip, PodIPs: []core.PodIP{{IP: p.ip}}, StartTime: &now}
	go k.run(p)
	return nil
}

// UpdatePod changes nothing: what a pod runs is fixed.
func (k *Kubelet) UpdatePod(context.Context, *core.Pod) error { return nil }

// DeletePod ends the containers, gently within the grace, and forgets the pod.
func (k *Kubelet) DeletePod(_ context.Context, object *core.Pod) error {
	k.mu.Lock()
	p, is := k.pods[keyOf(object.Namespace, object.Name)]
	if !is {
		k.mu.Unlock()
		return errdefs.NotFound("no such pod")
	}
	p.stopping = true
	running := p.terminate()
	k.mu.Unlock()
	grace := 30 * time.Second
	if s := object.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	awaitAll(running, grace)
	k.mu.Lock()
	delete(k.pods, keyOf(object.Namespace, object.Name))
	last := p.object.DeepCopy()
	k.writeHosts()
	notify := k.notify
	k.mu.Unlock()
	_ = sh("ip", "netns", "del", p.ns)
	_ = os.RemoveAll("/etc/netns/" + p.ns)
	_ = os.RemoveAll(p.dir)
	last = ended(last)
	last.Status.Conditions = append(last.Status.Conditions, foreign(object.Status.Conditions)...)
	notify(last)
	// A kubelet tells how the containers ended and then lets the object go;
	// virtual-kubelet would leave it until the grace is over.
	go func() {
		if status, err := json.Marshal(map[string]any{"status": last.Status}); err == nil {
			_, _ = k.client.CoreV1().Pods(object.Namespace).Patch(context.Background(), object.Name, types.MergePatchType, status, meta.PatchOptions{}, "status")
		}
		_ = k.client.CoreV1().Pods(object.Namespace).Delete(context.Background(), object.Name,
			meta.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &meta.Preconditions{UID: &object.UID}})
	}()
	return nil
}

// foreign are the conditions that others than a kubelet set, as who evicts a pod does.
// A kubelet leaves them as they are.
func foreign(all []core.PodCondition) []core.PodCondition {
	return slices.DeleteFunc(slices.Clone(all), func(c core.PodCondition) bool {
		return slices.Contains([]core.PodConditionType{core.PodScheduled, core.PodInitialized, core.PodReady, core.ContainersReady}, c.Type)
	})
}

// ended is a pod of which nothing runs any more.
func ended(p *core.Pod) *core.Pod {
	for i := range p.Status.ContainerStatuses {
		if c := &p.Status.ContainerStatuses[i]; c.State.Terminated == nil {
			c.State = core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: 143, Reason: "Error", FinishedAt: meta.Now()}}
		}
	}
	if p.Status.Phase == core.PodRunning || p.Status.Phase == core.PodPending {
		p.Status.Phase = core.PodFailed
	}
	return p
}

func (k *Kubelet) get(namespace, name string) (*pod, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p, is := k.pods[keyOf(namespace, name)]; is {
		return p, nil
	}
	return nil, errdefs.NotFoundf("pod %s/%s not found", namespace, name)
}

// GetPod gives a pod with its status.
func (k *Kubelet) GetPod(_ context.Context, namespace, name string) (*core.Pod, error) {
	p, err := k.get(namespace, name)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return p.object.DeepCopy(), nil
}

// GetPodStatus gives the status of a pod.
func (k *Kubelet) GetPodStatus(ctx context.Context, namespace, name string) (*core.PodStatus, error) {
	p, err := k.GetPod(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return &p.Status, nil
}

// GetPods lists the pods.
func (k *Kubelet) GetPods(context.Context) (all []*core.Pod, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.pods {
		all = append(all, p.object.DeepCopy())
	}
	return all, nil
}

// NotifyPods takes who is to be told of changes.
func (k *Kubelet) NotifyPods(_ context.Context, notify func(*core.Pod)) { k.notify = notify }

func (k *Kubelet) push(p *pod) {
	k.mu.Lock()
	p.object.Status = p.status()
	now, notify := p.object.DeepCopy(), k.notify
	k.mu.Unlock()
	notify(now)
}

// writeHosts rewrites the hosts file of every pod, in place: it stands for the
// cluster's DNS. A headless service is the first pod that its selector matches.
func (k *Kubelet) writeHosts() {
	var b strings.Builder
	b.WriteString("127.0.0.1 localhost\n")
	for _, p := range k.pods {
		if s := p.object.Spec; s.Hostname != "" && s.Subdomain != "" {
			name := s.Hostname + "." + s.Subdomain
			full := name + "." + p.object.Namespace
			fmt.Fprintf(&b, "%s %s %s %s.svc %s.svc.cluster.local\n", p.ip, name, full, full, full)
		}
		fmt.Fprintf(&b, "%s %s\n", p.ip, p.object.Name)
	}
	for _, s := range k.services {
		if p := k.behind(s); p != nil {
			full := s.Name + "." + s.Namespace
			fmt.Fprintf(&b, "%s %s %s %s.svc %s.svc.cluster.local\n", p.ip, s.Name, full, full, full)
		}
	}
	if b.String() == k.hosts {
		return
	}
	k.hosts = b.String()
	for _, p := range k.pods {
		_ = os.MkdirAll("/etc/netns/"+p.ns, 0o755)
		_ = os.WriteFile("/etc/netns/"+p.ns+"/hosts", []byte(k.hosts), 0o644)
	}
}

func (k *Kubelet) behind(s core.Service) *pod {
	if len(s.Spec.Selector) == 0 {
		return nil
	}
	for _, p := range k.pods {
		if p.object.Namespace == s.Namespace && p.object.Status.Phase == core.PodRunning && labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(p.object.Labels)) {
			return p
		}
	}
	return nil
}

// watchServices keeps the names of services known.
func (k *Kubelet) watchServices(ctx context.Context) {
	for ctx.Err() == nil {
		if list, err := k.client.CoreV1().Services("").List(ctx, meta.ListOptions{ResourceVersion: "0"}); err == nil {
			k.mu.Lock()
			k.services = list.Items
			k.writeHosts()
			k.mu.Unlock()
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// Run runs the node until ctx ends, and then ends its pods.
func Run(ctx context.Context, o Options) error {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := bridge(o); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Root, 0o755); err != nil {
		return err
	}
	k := &Kubelet{o: o, client: client, pods: map[string]*pod{}, notify: func(*core.Pod) {}}
	defer k.close()
	go k.watchServices(ctx)
	mux := http.NewServeMux()
	n, err := nodeutil.NewNode(o.Node, func(nodeutil.ProviderConfig) (nodeutil.Provider, node.NodeProvider, error) { return k, nil, nil },
		nodeutil.WithClient(client), nodeutil.AttachProviderRoutes(mux), func(c *nodeutil.NodeConfig) error {
			c.Handler, c.NumWorkers = mux, 8
			c.HTTPListenAddr = net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port))
			describe(c, o)
			return nil
		}, nodeutil.WithTLSConfig(selfSigned))
	if err != nil {
		return err
	}
	return n.Run(ctx)
}

// describe says what the node has.
func describe(c *nodeutil.NodeConfig, o Options) {
	s := &c.NodeSpec.Status
	s.NodeInfo.KubeletVersion = "v1.35.4"
	c.NodeSpec.Spec.Taints = nil
	c.NodeSpec.Labels = map[string]string{"kubernetes.io/hostname": o.Node, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "nvidia.com/gpu.product": "SIMULATED"}
	s.Capacity = core.ResourceList{"cpu": resource.MustParse("64"), "memory": resource.MustParse("256Gi"), "pods": resource.MustParse("110"),
		"nvidia.com/gpu": *resource.NewQuantity(int64(o.GPUs), resource.DecimalSI)}
	s.Allocatable = s.Capacity
	s.Addresses = []core.NodeAddress{{Type: core.NodeInternalIP, Address: "127.0.0.1"}}
	s.DaemonEndpoints.KubeletEndpoint.Port = int32(o.Port)
	s.Conditions = []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue, Reason: "Rig", LastHeartbeatTime: meta.Now(), LastTransitionTime: meta.Now()}}
}

// close ends all pods.
func (k *Kubelet) close() {
	pods, _ := k.GetPods(context.Background())
	for _, p := range pods {
		p.DeletionGracePeriodSeconds = new(int64)
		_ = k.DeletePod(context.Background(), p)
	}
	_ = sh("ip", "link", "del", k.o.Bridge)
}

var _ nodeutil.Provider = (*Kubelet)(nil)
var _ api.PodListerFunc = (*Kubelet)(nil).GetPods
