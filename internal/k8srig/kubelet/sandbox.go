package kubelet

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// bridge makes the network between the pods.
func bridge(o Options) error {
	if sh("ip", "link", "show", o.Bridge) == nil {
		return nil
	}
	for _, words := range [][]string{{"ip", "link", "add", o.Bridge, "type", "bridge"}, {"ip", "addr", "add", o.Net + ".1/24", "dev", o.Bridge}, {"ip", "link", "set", o.Bridge, "up"}} {
		if err := sh(words...); err != nil {
			return err
		}
	}
	return nil
}

// network gives a pod a network of its own, on the bridge.
func (k *Kubelet) network(p *pod) error {
	veth := "vk" + p.ns[len(p.ns)-8:]
	for _, words := range [][]string{
		{"ip", "netns", "add", p.ns},
		{"ip", "link", "add", veth, "type", "veth", "peer", "name", "eth0", "netns", p.ns},
		{"ip", "link", "set", veth, "master", k.o.Bridge, "up"},
		{"ip", "-n", p.ns, "addr", "add", p.ip + "/24", "dev", "eth0"},
		{"ip", "-n", p.ns, "link", "set", "eth0", "up"},
		{"ip", "-n", p.ns, "link", "set", "lo", "up"},
	} {
		if err := sh(words...); err != nil {
			return err
		}
	}
	return nil
}

// inside sets up the file system of a container and becomes its command. Its
// words: where to build, the host name, the working directory, the file of the
// hosts, the one that takes the termination message and its place inside, and how
// many volumes there are; then each volume's source, place and mode; then the
// command.
const inside = `set -e
root=$1 host=$2 dir=$3 hosts=$4 note=$5 at=$6 n=$7
shift 7
hostname "$host"
mount --make-rprivate /
mkdir -p "$root"
mount -t tmpfs rig "$root"
mkdir "$root/u" "$root/w" "$root/m"
mount -t overlay rig -o "lowerdir=/,upperdir=$root/u,workdir=$root/w" "$root/m"
m=$root/m
mount -t proc proc "$m/proc"
mount --rbind /sys "$m/sys"
mount -t tmpfs rig "$m/tmp"
chmod 1777 "$m/tmp"
mount -t tmpfs rig "$m/dev"
for d in null zero full random urandom tty; do : >"$m/dev/$d"; mount --bind "/dev/$d" "$m/dev/$d"; done
ln -s /proc/self/fd "$m/dev/fd"
mkdir "$m/dev/shm"
mount -t tmpfs -o size=64m rig "$m/dev/shm"
[ ! -e "$hosts" ] || mount --bind "$hosts" "$m/etc/hosts"
mkdir -p "$m$(dirname "$at")"
: >"$m$at"
mount --bind "$note" "$m$at"
while [ "$n" -gt 0 ]; do
	mkdir -p "$m$2"
	mount --bind "$1" "$m$2"
	[ "$3" != ro ] || mount -o remount,bind,ro "$m$2"
	shift 3
	n=$((n - 1))
done
exec chroot "$m" sh -c 'cd "$0" 2>/dev/null || cd /; exec "$@"' "$dir" "$@"`

// command is what runs a container, and the file that takes its termination
// message.
func (k *Kubelet) command(p *pod, c *core.Container) (cmd *exec.Cmd, note string, err error) {
	vars := k.vars(p, c)
	argv := append(slices.Clone(c.Command), c.Args...)
	if len(argv) == 0 {
		return nil, "", fmt.Errorf("no command: the entry points of images are not known here")
	}
	for i, word := range argv {
		argv[i] = expansion.Expand(word, expansion.MappingFuncFor(vars))
	}
	note = filepath.Join(p.dir, "note-"+c.Name)
	if err := os.WriteFile(note, nil, 0o666); err != nil {
		return nil, "", err
	}
	host, at, dir := p.object.Spec.Hostname, c.TerminationMessagePath, c.WorkingDir
	if host == "" {
		host = p.object.Name
	}
	if at == "" {
		at = core.TerminationMessagePathDefault
	}
	if dir == "" {
		dir = "/"
	}
	words := []string{"netns", "exec", p.ns, "unshare", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc", "--",
		"sh", "-c", inside, "inside", filepath.Join(p.dir, "root-"+c.Name), host, dir, "/etc/netns/" + p.ns + "/hosts", note, at, strconv.Itoa(len(c.VolumeMounts))}
	for _, m := range c.VolumeMounts {
		source, err := k.volume(p, m.Name)
		if err != nil {
			return nil, "", err
		}
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		words = append(words, filepath.Join(source, m.SubPath), m.MountPath, mode)
	}
	cmd = exec.Command("ip", append(words, argv...)...)
	cmd.Dir, cmd.Env = "/", k.env(vars)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, note, nil
}

// volume makes the content of a volume and gives its directory.
func (k *Kubelet) volume(p *pod, name string) (string, error) {
	dir := filepath.Join(p.dir, "volumes", name)
	i := slices.IndexFunc(p.object.Spec.Volumes, func(v core.Volume) bool { return v.Name == name })
	if i < 0 {
		return "", fmt.Errorf("there is no volume %s", name)
	}
	files, items, mode := map[string][]byte{}, []core.KeyToPath(nil), os.FileMode(0o644)
	switch v := p.object.Spec.Volumes[i].VolumeSource; {
	case v.HostPath != nil:
		return v.HostPath.Path, nil
	case v.PersistentVolumeClaim != nil: // one directory for each claim, as on one shared file system
		dir = filepath.Join(k.o.Root, "claims", p.object.Namespace, v.PersistentVolumeClaim.ClaimName)
	case v.ConfigMap != nil:
		o, err := k.client.CoreV1().ConfigMaps(p.object.Namespace).Get(background(), v.ConfigMap.Name, meta.GetOptions{})
		if err != nil {
			return "", err
		}
		for key, text := range o.Data {
			files[key] = []byte(text)
		}
		maps.Copy(files, o.BinaryData)
		items = v.ConfigMap.Items
	case v.Secret != nil:
		o, err := k.client.CoreV1().Secrets(p.object.Namespace).Get(background(), v.Secret.SecretName, meta.GetOptions{})
		if err != nil {
			return "", err
		}
		files, items = o.Data, v.Secret.Items
		if m := v.Secret.DefaultMode; m != nil {
			mode = os.FileMode(*m)
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	if len(items) == 0 {
		for key := range files {
			items = append(items, core.KeyToPath{Key: key, Path: key})
		}
	}
	for _, item := range items {
		is := mode
		if item.Mode != nil {
			is = os.FileMode(*item.Mode)
		}
		if err := os.WriteFile(filepath.Join(dir, item.Path), files[item.Key], is); err != nil {
			return "", err
		}
	}
	return dir, os.Chmod(dir, 0o777)
}

func (k *Kubelet) env(vars map[string]string) []string {
	env := []string{"PATH=" + k.o.Bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	for key, value := range vars {
		env = append(env, key+"="+value)
	}
	return env
}

// vars are the variables of a container, with the kubelet's own expansion.
func (k *Kubelet) vars(p *pod, c *core.Container) map[string]string {
	vars := map[string]string{"HOSTNAME": p.object.Name}
	for _, from := range c.EnvFrom {
		for key, value := range k.allOf(p, from) {
			vars[from.Prefix+key] = value
		}
	}
	for _, e := range c.Env {
		value := expansion.Expand(e.Value, expansion.MappingFuncFor(vars))
		if e.ValueFrom != nil {
			value = k.valueOf(p, c, e.ValueFrom)
		}
		vars[e.Name] = value
	}
	return vars
}

func (k *Kubelet) allOf(p *pod, from core.EnvFromSource) map[string]string {
	if r := from.ConfigMapRef; r != nil {
		if o, err := k.client.CoreV1().ConfigMaps(p.object.Namespace).Get(background(), r.Name, meta.GetOptions{}); err == nil {
			return o.Data
		}
	}
	all := map[string]string{}
	if r := from.SecretRef; r != nil {
		if o, err := k.client.CoreV1().Secrets(p.object.Namespace).Get(background(), r.Name, meta.GetOptions{}); err == nil {
			for key, value := range o.Data {
				all[key] = string(value)
			}
		}
	}
	return all
}

func (k *Kubelet) valueOf(p *pod, c *core.Container, from *core.EnvVarSource) string {
	switch {
	case from.FieldRef != nil:
		return k.field(p, from.FieldRef.FieldPath)
	case from.ConfigMapKeyRef != nil:
		return k.allOf(p, core.EnvFromSource{ConfigMapRef: &core.ConfigMapEnvSource{LocalObjectReference: from.ConfigMapKeyRef.LocalObjectReference}})[from.ConfigMapKeyRef.Key]
	case from.SecretKeyRef != nil:
		return k.allOf(p, core.EnvFromSource{SecretRef: &core.SecretEnvSource{LocalObjectReference: from.SecretKeyRef.LocalObjectReference}})[from.SecretKeyRef.Key]
	case from.ResourceFieldRef != nil:
		if q, is := c.Resources.Limits[core.ResourceName(strings.TrimPrefix(from.ResourceFieldRef.Resource, "limits."))]; is {
			return strconv.FormatInt(q.Value(), 10)
		}
	}
	return ""
}

func (k *Kubelet) field(p *pod, path string) string {
	o := p.object
	for begin, from := range map[string]map[string]string{"metadata.labels['": o.Labels, "metadata.annotations['": o.Annotations} {
		if key, is := strings.CutPrefix(path, begin); is {
			return from[strings.TrimSuffix(key, "']")]
		}
	}
	return map[string]string{"status.podIP": p.ip, "status.podIPs": p.ip, "status.hostIP": "127.0.0.1", "spec.nodeName": k.o.Node,
		"spec.serviceAccountName": o.Spec.ServiceAccountName, "metadata.name": o.Name, "metadata.namespace": o.Namespace, "metadata.uid": string(o.UID)}[path]
}
