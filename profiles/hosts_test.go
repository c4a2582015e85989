package profiles

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	hosts "github.com/dlwb/dlwb/cloud/hosts/options"
)

func TestAnEntryMayStandForManyHosts(t *testing.T) {
	for entry, want := range map[string]string{
		"gpu1":                  "gpu1",
		"gpu[1-4]":              "gpu1 gpu2 gpu3 gpu4",
		"10.0.0.[8-11]":         "10.0.0.8 10.0.0.9 10.0.0.10 10.0.0.11",
		"ada@n[08-10].lab:2222": "ada@n08.lab:2222 ada@n09.lab:2222 ada@n10.lab:2222",
		"gpu[1,5-6]":            "gpu1 gpu5 gpu6",
		"r[1-2]-[a]":            "r[1-2]-[a]", // refused later, as it stands
		"r[1-2]n[1-2]":          "r1n1 r1n2 r2n1 r2n2",
		"my_gpu[3-3]":           "my_gpu3",
		"[::1]:22":              "[::1]:22",
	} {
		got, fl := spreadHosts(entry)
		if fl.why != "" || strings.Join(got, " ") != want {
			t.Errorf("%s: %q %v, want %s", entry, got, fl, want)
		}
	}
	for entry, why := range map[string]string{"gpu[4-1]": "backwards", "gpu[1-2000]": "more than 1000", "r[1-40]n[1-40]": "more than 1000"} {
		if got, fl := spreadHosts(entry); !strings.Contains(fl.why, why) {
			t.Errorf("%s: %d hosts, %v", entry, len(got), fl)
		}
	}
}

func TestRangesOfHostsAreCountedAndHeldOncePerHost(t *testing.T) {
	p := mustParse(t, "x.yaml", []byte("provider: hosts\nmachines:\n  hosts:\n  - gpu[1-3]\n  - ada@my_gpu\nrun: {command: train.py}\n"))
	if want := []string{"gpu1", "gpu2", "gpu3", "ada@my_gpu"}; p.Machines.Count != 4 || !slices.Equal(p.Own().(*hosts.Machines).Hosts, want) {
		t.Errorf("%d nodes, %q", p.Machines.Count, p.Own().(*hosts.Machines).Hosts)
	}
	_, err := Parse("x.yaml", []byte("provider: hosts\nmachines:\n  hosts: ['gpu[1-3]', gpu2]\nrun: {command: train.py}\n"))
	if err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("got %v", err)
	}
}

func TestHostKeysAreKeysOrFingerprints(t *testing.T) {
	const head = "provider: hosts\nmachines:\n  hosts: [gpu1, gpu2]\n  host_keys:\n"
	const tail = "run: {command: train.py}\n"
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIH3Yt4ZTUtFbQv7pTn2v1mT3v3w8m4h1cV0G9zX5q1aB"
	finger := "SHA256:" + strings.Repeat("a", 43)
	p := mustParse(t, "x.yaml", []byte(head+"    gpu1: "+key+"\n    gpu2: "+finger+"\n"+tail))
	if p.Own().(*hosts.Machines).HostKeys["gpu1"] != key || p.Own().(*hosts.Machines).HostKeys["gpu2"] != finger {
		t.Errorf("%q", p.Own().(*hosts.Machines).HostKeys)
	}
	again := mustParse(t, "x.yaml", Write(p))
	if !maps.Equal(again.Own().(*hosts.Machines).HostKeys, p.Own().(*hosts.Machines).HostKeys) {
		t.Errorf("written and read again: %q", again.Own().(*hosts.Machines).HostKeys)
	}
	for bad, why := range map[string]string{"    gpu1: yes\n": "no host key", "    gpu1: MD5:00\n": "no host key", "    'g p': " + finger + "\n": "no address"} {
		if _, err := Parse("x.yaml", []byte(head+bad+tail)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

func TestHostsMayHaveThingsOfTheirOwn(t *testing.T) {
	key := "SHA256:" + strings.Repeat("a", 43)
	const head, tail = "provider: hosts\nmachines:\n  hosts:\n", "run: {command: train.py}\n"
	p := mustParse(t, "x.yaml", []byte(head+`  - gpu0
  - {host: "gpu[1-2]", user: ada, port: 2222, gpus: [1, 0], dir: /data/ada/}
  - {host: 10.0.0.5, python: /opt/conda/bin/python3, host_key: `+key+`}
  - {host: "[::1]", port: 22}
  - "ada@[fe80::1%eth0]:2222"
`+tail))
	m := p.Own().(*hosts.Machines)
	if want := []string{"gpu0", "ada@gpu1:2222", "ada@gpu2:2222", "10.0.0.5", "[::1]:22", "ada@[fe80::1%eth0]:2222"}; !slices.Equal(m.Hosts, want) || p.Machines.Count != 6 {
		t.Errorf("%d hosts %q", p.Machines.Count, m.Hosts)
	}
	both := hosts.HostOption{GPUs: []int{1, 0}, Dir: "/data/ada"}
	want := map[string]hosts.HostOption{"ada@gpu1:2222": both, "ada@gpu2:2222": both, "10.0.0.5": {Python: "/opt/conda/bin/python3", HostKey: key}}
	if !reflect.DeepEqual(m.HostOptions, want) {
		t.Errorf("%+v", m.HostOptions)
	}
	if again := mustParse(t, "x.yaml", Write(p)); !reflect.DeepEqual(again.Own().(*hosts.Machines).HostOptions, want) || !slices.Equal(again.Own().(*hosts.Machines).Hosts, m.Hosts) {
		t.Errorf("written and read again: %+v\n%s", again.Own(), Write(p))
	}
	// All that is wrong comes at once, each with its place.
	_, err := Parse("x.yaml", []byte(head+`  - {host: gpu1, gpu: [0], dir: data}
  - {user: ada}
  - {host: gpu2, gpus: 2}
  - {host: gpu3, gpus: [0, 0, x, 64]}
  - {host: ada@gpu4:22, user: eve}
  - {host: "a b"}
  - {host: gpu5, port: 0, python: a b, host_key: none}
  - {host: gpu6, dir: /}
  - {host: gpu7, dir: "~/x"}
  - gpu8
  - {host: gpu8, gpus: [0]}
`+tail))
	var all Errors
	if !errors.As(err, &all) {
		t.Fatalf("got %v", err)
	}
	var got []string
	for _, e := range all {
		got = append(got, fmt.Sprintf("%d:%d %s", e.Line, e.Column, e.Why))
	}
	for i, part := range []string{
		"4:18 a host has no such key", "4:33 it is a directory of the host", "5:5 this host has no host", "6:24 these are the numbers of its GPUs",
		"7:28 it is in the list twice", "7:31 a GPU has a number from 0 to 63", "7:34 a GPU has a number", "8:31 host has it already: ada",
		"9:12 this is no address", "10:24 a port is a number", "10:35 it has a space", "10:50 this is no host key",
		"11:23 it is a directory of the host", "12:23 ~ is not expanded", "14:12 it is in the list twice",
	} {
		if i >= len(got) || !strings.HasPrefix(got[i], part) {
			t.Fatalf("fault %d is not %q:\n%s", i, part, strings.Join(got, "\n"))
		}
	}
	if _, err := Parse("x.yaml", []byte(head+"  - {host: gpu1, host_key: "+key+"}\n  host_keys: {gpu1: '"+key+"'}\n"+tail)); err == nil || !strings.Contains(err.Error(), "keep one of the two") {
		t.Errorf("two host keys of one host: %v", err)
	}
}

func TestForwardsAreNamesPortsAndHTTPPorts(t *testing.T) {
	p := mustParse(t, "x.yaml", []byte("run: {command: train.py}\nforward: [jupyter, 8265, 6006/http, 08/http]\n"))
	if want := []string{"jupyter", "8265", "6006/http", "8/http"}; !slices.Equal(p.Forward, want) {
		t.Errorf("%q", p.Forward)
	}
	if again := mustParse(t, "x.yaml", Write(p)); !slices.Equal(again.Forward, p.Forward) {
		t.Errorf("written and read again: %q", again.Forward)
	}
	for text, why := range map[string]string{"8265/https": "no such kind of port", "70000/http": "1 to 65535", "0/http": "1 to 65535", "jupiter": "nothing with this name", "jupyter/http": "nothing with this name"} {
		if _, err := Parse("x.yaml", []byte("run: {command: train.py}\nforward: ["+text+"]\n")); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// ssh: leads to a host by the user's own ssh, which has a configuration for the rest.
func TestHostsMayBeReachedByTheUsersOwnSSH(t *testing.T) {
	const head, tail = "provider: hosts\nmachines:\n  hosts: [", "]\nrun: {command: train.py}\n"
	p := mustParse(t, "x.yaml", []byte(head+`ssh:gpu1, "ssh:ada@gpu[2-3]", ssh:22, {host: ssh:gpu4, gpus: [0]}, {host: "ssh:gpu5", user: ada}`+tail))
	m := p.Own().(*hosts.Machines)
	if want := []string{"ssh:gpu1", "ssh:ada@gpu2", "ssh:ada@gpu3", "ssh:22", "ssh:gpu4", "ssh:ada@gpu5"}; !slices.Equal(m.Hosts, want) {
		t.Errorf("%q", m.Hosts)
	}
	if again := mustParse(t, "x.yaml", Write(p)); !reflect.DeepEqual(again.Own(), p.Own()) {
		t.Errorf("written and read again: %+v", again.Own())
	}
	var told []string
	for _, e := range hosts.Provider.Effects(m) {
		told = append(told, e.Text)
	}
	if text := strings.Join(told, "\n"); !strings.Contains(text, "gpu1, ada@gpu2, ada@gpu3, gpu4, ada@gpu5 by your own ssh") {
		t.Errorf("whoever trusts it is told\n%s", text)
	}
	for entry, why := range map[string]string{
		"ssh:gpu1:2222": "takes a host from its configuration", "'ssh:[::1]'": "takes a host from its configuration", "ssh:-oProxyCommand=x": "this is no address",
		"'ssh:a;b'": "this is no address", "'ssh:$(x)'": "this is no address", "ada@ssh:gpu1": "this is no address", "'ssh:'": "this is no address",
		"{host: ssh:gpu1, port: 22}":                                                "takes the port from its configuration",
		"{host: ssh:ada@gpu1, user: eve}":                                           "host has it already: ada",
		"{host: ssh:gpu1, host_key: '" + "SHA256:" + strings.Repeat("a", 43) + "'}": "is what your own ssh checks",
	} {
		if _, err := Parse("x.yaml", []byte(head+entry+tail)); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", entry, err)
		}
	}
}
