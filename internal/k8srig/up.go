package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// rig is a cluster that is being made.
type rig struct {
	dir, bin string
	modules  map[string]string // where the source of a module lies
	with     []string
	gpus     int
	logMax   int
	kubelet  int // its port
	port     map[string]int
	began    time.Time
	running  []*exec.Cmd // in the order of their start
	certs    certs
	cluster  *cluster
}

// token is what the administrator of the rig shows.
const token = "secret-admin-token"

// up makes a cluster, says so on its output, and ends it when its input does.
func up(args []string) (err error) {
	runtime.LockOSThread() // what it starts ends with this thread
	r := &rig{modules: map[string]string{}, port: map[string]int{}, began: time.Now()}
	flags := flag.NewFlagSet("up", flag.ExitOnError)
	flags.StringVar(&r.dir, "dir", "", "where everything lies")
	flags.StringVar(&r.bin, "bin", "", "goes before PATH in the pods")
	flags.IntVar(&r.gpus, "gpus", 4, "of the node")
	flags.IntVar(&r.logMax, "logmax", 10<<20, "a container's log is rotated at this size")
	modules := flags.String("modules", "", "MODULE=DIR,…")
	with := flags.String("with", "kubeflow,trainer,kueue", "which operators")
	_ = flags.Parse(args)
	for pair := range strings.SplitSeq(*modules, ",") {
		path, dir, _ := strings.Cut(pair, "=")
		r.modules[path] = dir
	}
	r.with = strings.Split(*with, ",")
	defer r.stop()
	if err := r.start(); err != nil {
		return err
	}
	fmt.Printf("ready %s\n", r.kubeconfig())
	over := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, os.Stdin); close(over) }()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	select {
	case <-over:
	case <-signals:
	}
	return nil
}

func (r *rig) kubeconfig() string { return filepath.Join(r.dir, "kubeconfig") }

func (r *rig) file(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) start() (err error) {
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"etcd", "peer", "api", "kubelet", "kubeflow", "kubeflow-metrics", "kubeflow-health", "jobset", "jobset-metrics", "jobset-health",
		"trainer", "trainer-metrics", "trainer-health", "kuberay-health", "kueue", "kueue-metrics", "kueue-health"} {
		if r.port[name], err = freePort(); err != nil {
			return err
		}
	}
	if r.certs, err = makeCerts(r.dir); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{{"control plane", r.controlPlane}, {"node", r.node}, {"kubeflow", r.kubeflow}, {"mpi", r.mpi}, {"trainer", r.trainer}, {"kuberay", r.kuberay}, {"kueue", r.kueue}, {"controllers", r.controllers}} {
		if slices.Contains([]string{"kubeflow", "mpi", "trainer", "kuberay", "kueue"}, step.name) && !slices.Contains(r.with, step.name) {
			continue
		}
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s after %s\n", step.name, time.Since(r.began).Round(100*time.Millisecond))
	}
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

func local(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// run starts a program beside this one, or a part of this one.
func (r *rig) run(name, program string, env []string, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	path := filepath.Join(filepath.Dir(self), program)
	switch program {
	case "":
		path, args = self, append([]string{name}, args...)
	case "training-operator.v1": // its certificates lie at a fixed place
		args = append([]string{"--mount", "sh", "-c", `mkdir -p /tmp/k8s-webhook-server && mount --bind "$0" /tmp/k8s-webhook-server && exec "$@"`,
			r.file("tmp/k8s-webhook-server"), path}, args...)
		path = "unshare"
	}
	log, err := os.Create(r.file(name + ".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.dir, append(os.Environ(), env...), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	r.running = append(r.running, cmd)
	return os.WriteFile(r.file(name+".pid"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644)
}

// stop ends everything, the last first: an API server whose etcd is gone hangs,
// so what is left after a moment is killed.
func (r *rig) stop() {
	for _, cmd := range slices.Backward(r.running) {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		over := make(chan struct{})
		go func() { _ = cmd.Wait(); close(over) }()
		select {
		case <-over:
		case <-time.After(map[bool]time.Duration{true: 20 * time.Second, false: 500 * time.Millisecond}[strings.Contains(strings.Join(cmd.Args, " "), " kubelet ")]):
			_ = cmd.Process.Kill()
			<-over
		}
	}
}

func (r *rig) controlPlane() error {
	if err := os.WriteFile(r.file("tokens.csv"), []byte(token+",admin,admin-uid,system:masters\ntenant-token,tenant,tenant-uid,tenants\n"), 0o600); err != nil {
		return err
	}
	kubeconfig := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: rig, cluster: {server: "https://127.0.0.1:%d", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: %s}}, {name: tenant, user: {token: tenant-token}}, {name: nobody, user: {token: wrong}}]
contexts:
- {name: rig, context: {cluster: rig, user: admin, namespace: default}}
- {name: tenant, context: {cluster: rig, user: tenant, namespace: team}}
- {name: nobody, context: {cluster: rig, user: nobody, namespace: default}}
current-context: rig
`, r.port["api"], token)
	if err := os.WriteFile(r.kubeconfig(), []byte(kubeconfig), 0o600); err != nil {
		return err
	}
	etcd := "http://" + local(r.port["etcd"])
	peer := "http://" + local(r.port["peer"])
	err := errors.Join(
		r.run("etcd", "", nil, "--data-dir", r.file("etcd"), "--unsafe-no-fsync", "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
			"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer),
		r.run("kube-apiserver", "", nil, "--etcd-servers="+etcd, fmt.Sprint("--secure-port=", r.port["api"]), "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
			"--cert-dir="+r.file("api"), "--service-account-key-file="+r.file("accounts.key"), "--service-account-signing-key-file="+r.file("accounts.key"),
			"--service-account-issuer=https://kubernetes.default.svc", "--token-auth-file="+r.file("tokens.csv"), "--authorization-mode=RBAC",
			"--service-cluster-ip-range=10.96.0.0/16", "--endpoint-reconciler-type=none", "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
			"--enable-priority-and-fairness=false", "--kubelet-preferred-address-types=InternalIP", "--allow-privileged=true"),
	)
	if err != nil {
		return err
	}
	if err := await("https://"+local(r.port["api"])+"/readyz", time.Minute); err != nil {
		return err
	}
	if r.cluster, err = openCluster(r.kubeconfig()); err != nil {
		return err
	}
	return r.run("kube-scheduler", "", nil, "--kubeconfig="+r.kubeconfig(), "--leader-elect=false", "--secure-port=0")
}

// controllers start when all kinds of the operators are there: of one that comes later
// the garbage collector hears after half a minute or more, and what such an object owned
// stays until then.
func (r *rig) controllers() error {
	return r.run("kube-controller-manager", "", nil, "--kubeconfig="+r.kubeconfig(), "--controllers=garbage-collector-controller,job-controller,namespace-controller,serviceaccount-controller,pod-garbage-collector-controller,ttl-after-finished-controller,root-ca-certificate-publisher-controller,resourcequota-controller,endpoints-controller,endpointslice-controller",
		"--service-account-private-key-file="+r.file("accounts.key"), "--root-ca-file="+r.file("api/apiserver.crt"), "--leader-elect=false", "--secure-port=0")
}

func (r *rig) node() error {
	n := os.Getpid() % 200
	err := r.run("kubelet", "", nil, "-kubeconfig", r.kubeconfig(), "-node", "gpu-0", "-root", r.file("pods"), "-bin", r.bin, "-bridge", fmt.Sprintf("dlwbk%d", n),
		"-net", fmt.Sprintf("10.244.%d", n), "-port", strconv.Itoa(r.port["kubelet"]), "-gpus", strconv.Itoa(r.gpus), "-logmax", strconv.Itoa(r.logMax))
	if err != nil {
		return err
	}
	return r.cluster.awaitNode("gpu-0")
}

// await waits until an address answers that it is ready.
func await(url string, limit time.Duration) error {
	client := &http.Client{Timeout: 3 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+token)
		if resp, err := client.Do(req); err == nil {
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if strings.TrimSpace(string(text)) == "ok" {
				return nil
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("%s is not ready after %s", url, limit)
}
