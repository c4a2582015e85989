//go:build unix

package kubernetes

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/dlwb/dlwb/cloud/kubernetes/options"
	"github.com/dlwb/dlwb/internal/testprogram"
)

// gate is an API server that notes who comes.
type gate struct {
	*httptest.Server
	mu   sync.Mutex
	came []string
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	who := r.Header.Get("Authorization")
	for _, c := range r.TLS.PeerCertificates {
		who += "certificate of " + c.Subject.CommonName
	}
	g.mu.Lock()
	g.came = append(g.came, who)
	g.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"major": "1", "minor": "20"}`)
}

func (g *gate) last() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.came) == 0 {
		return "nobody"
	}
	return g.came[len(g.came)-1]
}

// port is where it listens, whatever name it is called by.
func (g *gate) port() string {
	_, port, _ := net.SplitHostPort(g.Listener.Addr().String())
	return port
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// certified makes a certificate that vouches for itself.
func certified(t *testing.T, name string, until time.Time) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: until.Add(-time.Hour), NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, DNSNames: []string{"api.lab"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("CERTIFICATE", der), pemOf("EC PRIVATE KEY", pkcs)
}

// gated starts an API server whose certificate holds until then, and gives the directory
// that has its authority as ca.crt, and a client's certificate.
func gated(t *testing.T, until time.Time) (*gate, string) {
	t.Helper()
	g, dir := &gate{}, t.TempDir()
	cert, key := certified(t, "server", until)
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	g.Server = httptest.NewUnstartedServer(g)
	g.Config.ErrorLog = nil
	g.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
	g.StartTLS()
	t.Cleanup(g.Close)
	mine, own := certified(t, "me", time.Now().Add(time.Hour))
	for name, text := range map[string][]byte{"ca.crt": cert, "me.crt": mine, "me.key": own, "token": []byte("of-a-file\n"),
		"aws": []byte("#!/bin/sh\n[ \"$2\" = get-token ] || { echo 'Unable to locate credentials' >&2; exit 255; }\n" +
			`echo "{\"kind\": \"ExecCredential\", \"apiVersion\": \"client.authentication.k8s.io/v1beta1\", \"status\": {\"token\": \"k8s-aws-v1.$AWS_PROFILE\"}}"` + "\n")} {
		if err := testprogram.Write(filepath.Join(dir, name), text, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return g, dir
}

// written writes kubeconfigs, has KUBECONFIG name them all, and gives the door to the
// current context.
func written(t *testing.T, dir string, texts ...string) (*door, error) {
	t.Helper()
	var files []string
	for i, text := range texts {
		file := filepath.Join(dir, fmt.Sprintf("config%d", i))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	t.Setenv("KUBECONFIG", strings.Join(files, string(os.PathListSeparator)))
	at, err := locate(options.Machines{})
	if err != nil {
		return nil, err
	}
	return New().open(at)
}

const kubeconfigBegin = "apiVersion: v1\nkind: Config\n"

func configWith(cluster, user string) string {
	return kubeconfigBegin + "current-context: lab\ncontexts: [{name: lab, context: {cluster: c, user: u}}]\n" +
		"clusters: [{name: c, cluster: {" + cluster + "}}]\nusers: [{name: u, user: {" + user + "}}]\n"
}

// Each way in which a kubeconfig of the world logs in leads to the cluster, with what it
// says; where it can't, a sentence says why.
func TestEachWayOfAKubeconfigLeadsToItsCluster(t *testing.T) {
	g, dir := gated(t, time.Now().Add(time.Hour))
	server, trusted := "server: 'https://127.0.0.1:"+g.port()+"'", "certificate-authority: ca.crt"
	eks := "exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: ./aws, args: [%s], env: [{name: AWS_PROFILE, value: lab}]}"
	for _, c := range []struct{ name, cluster, user, came, said, next string }{
		{name: "a login program", cluster: server + ", " + trusted, user: fmt.Sprintf(eks, "eks, get-token, --cluster-name, c"), came: "Bearer k8s-aws-v1.lab"},
		{name: "a login program that fails", cluster: server + ", " + trusted, user: fmt.Sprintf(eks, "sso, login"), said: "the program by which context lab logs in has failed", next: "kubectl --context lab get pods"},
		{name: "a login program that is not here", cluster: server + ", " + trusted, user: "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: IfAvailable, command: dlwb-no-such-login}",
			said: "the program by which context lab logs in has failed"},
		{name: "an old protocol", cluster: server + ", " + trusted, user: "exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: ./aws}", said: "v1alpha1", next: "aws eks update-kubeconfig"},
		{name: "an old provider", cluster: server + ", " + trusted, user: "auth-provider: {name: gcp}", said: "gcp", next: "gke-gcloud-auth-plugin"},
		{name: "a certificate", cluster: server + ", " + trusted, user: "client-certificate: me.crt, client-key: me.key", came: "certificate of me"},
		{name: "a certificate that is not there", cluster: server + ", " + trusted, user: "client-certificate: no.crt, client-key: me.key", said: "no.crt"},
		{name: "a file with the token", cluster: server + ", " + trusted, user: "tokenFile: token", came: "Bearer of-a-file"},
		{name: "no look at the certificate", cluster: server + ", insecure-skip-tls-verify: true", user: "token: t", came: "Bearer t"},
		{name: "another authority", cluster: server, user: "token: t", said: "shows a certificate that the kubeconfig does not vouch for"},
		{name: "another name", cluster: "server: 'https://localhost:" + g.port() + "', " + trusted, user: "token: t", said: "shows a certificate of another name", next: "tls-server-name"},
		{name: "the name to look for", cluster: "server: 'https://localhost:" + g.port() + "', tls-server-name: api.lab, " + trusted, user: "token: t", came: "Bearer t"},
		{name: "a proxy that is not there", cluster: server + ", proxy-url: 'http://127.0.0.1:1', " + trusted, user: "token: t", said: "the proxy by which context lab reaches", next: "proxy-url"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := written(t, dir, configWith(c.cluster, c.user))
			if err == nil {
				err = d.explain(d.api.Version(t.Context()))
			}
			next := ""
			if a, is := err.(*apiError); is {
				next = a.next
			}
			if (err != nil) != (c.said != "") || err != nil && !strings.Contains(err.Error(), c.said) || !strings.Contains(next, c.next) {
				t.Errorf("%v (%s)", err, next)
			}
			if c.came != "" && g.last() != c.came {
				t.Errorf("%q came, not %q", g.last(), c.came)
			}
		})
	}
}

func TestACertificateThatIsOverIsSaidToBe(t *testing.T) {
	g, dir := gated(t, time.Now().Add(-time.Minute))
	d, err := written(t, dir, configWith("server: 'https://127.0.0.1:"+g.port()+"', certificate-authority: ca.crt", "token: t"))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.explain(d.api.Version(t.Context())); err == nil || !strings.Contains(err.Error(), "does not hold") || !strings.Contains(err.(*apiError).next, "clock") {
		t.Error(err)
	}
}

// A login program that waits for somebody keeps nobody waiting here.
func TestALoginProgramThatDoesNotEndIsNamedInTime(t *testing.T) {
	g, dir := gated(t, time.Now().Add(time.Hour))
	if err := testprogram.Write(filepath.Join(dir, "hangs"), []byte("#!/bin/sh\nexec sleep 15\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	d, err := written(t, dir, configWith("server: 'https://127.0.0.1:"+g.port()+"', certificate-authority: ca.crt", "exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: IfAvailable, command: ./hangs}"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // it is asked by then, on a busy machine too
	defer cancel()
	if err := d.explain(d.api.Version(ctx)); err == nil || !strings.Contains(err.Error(), "the program by which context lab logs in has failed") || !strings.Contains(err.Error(), "hangs does not end") {
		t.Error(err)
	}
	if g.last() != "nobody" {
		t.Errorf("%q came", g.last())
	}
}

// A kubeconfig of several files is one: each entry is as the first file has it, and paths
// are relative to their own file.
func TestSeveralFilesAreOneKubeconfig(t *testing.T) {
	g, dir := gated(t, time.Now().Add(time.Hour))
	d, err := written(t, dir, kubeconfigBegin+"current-context: lab\ncontexts: [{name: lab, context: {cluster: c, user: u}}]\n",
		kubeconfigBegin+"current-context: other\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:"+g.port()+"', certificate-authority: ca.crt}}]\nusers: [{name: u, user: {tokenFile: token}}]\n")
	if err != nil {
		t.Fatal(err)
	}
	if err := d.api.Version(t.Context()); err != nil || g.last() != "Bearer of-a-file" {
		t.Error(err, g.last())
	}
	if d.Context != "lab" || d.Namespace != "default" {
		t.Errorf("%+v", d.place)
	}
	if d, err = written(t, dir, strings.Replace(configWith("server: 'https://127.0.0.1:1'", "token: t"), "user: u}", "user: u, namespace: team}", 1)); err != nil || d.Namespace != "team" {
		t.Errorf("%+v, %v", d, err)
	}
}

// All of what goes to the cluster goes by the proxy that the kubeconfig names, also the
// connections by which commands are run in pods.
func TestTheProxyOfAKubeconfigIsUsedByAll(t *testing.T) {
	g, dir := gated(t, time.Now().Add(time.Hour))
	var mu sync.Mutex
	tunnels := 0
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		there, err := net.Dial("tcp", g.Listener.Addr().String())
		if r.Method != http.MethodConnect || r.Host != "api.lab:443" || err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		mu.Lock()
		tunnels++
		mu.Unlock()
		here, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		fmt.Fprint(here, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(there, here); _ = there.Close() }()
		_, _ = io.Copy(here, there)
		_ = here.Close()
	}))
	t.Cleanup(proxy.Close)
	d, err := written(t, dir, configWith("server: 'https://api.lab', proxy-url: '"+proxy.URL+"', certificate-authority: ca.crt", "token: t"))
	if err != nil {
		t.Fatal(err)
	}
	if err := d.api.Version(t.Context()); err != nil || tunnels != 1 {
		t.Error(err, tunnels)
	}
	r := &replica{ref: ref{place: d.place, Kind: options.Job, Name: "run"}}
	err = r.pour(t.Context(), d, &core.Pod{}, []string{"true"}, io.Discard)
	mu.Lock()
	defer mu.Unlock()
	if err == nil || tunnels < 2 || g.last() != "Bearer t" {
		t.Errorf("%d tunnels, %v", tunnels, err)
	}
}
