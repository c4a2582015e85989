package options

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/dlwb/dlwb/internal/pattern"
)

// Toleration is a taint that pods tolerate.
type Toleration struct {
	Key    string
	Value  string // with Equal
	Equal  bool   // the taint must have that value
	Effect string // empty: any
}

var effectsOfTaints = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

var labelForm = pattern.New(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)

// ParseToleration reads key, key:Effect, key=value or key=value:Effect.
func ParseToleration(text string) (t Toleration, err error) {
	rest, effect, has := strings.Cut(text, ":")
	t.Key, t.Value, t.Equal = strings.Cut(rest, "=")
	t.Effect = effect
	switch {
	case has && !slices.Contains(effectsOfTaints, effect):
		err = fmt.Errorf("%q: a taint has the effect %s", text, strings.Join(effectsOfTaints, ", "))
	case !labelForm.MatchString(t.Key):
		err = fmt.Errorf("%q begins with no key of a taint", text)
	}
	return t, err
}

// Source is where the content of a volume is from.
type Source string

// The sources of volumes.
const (
	Claim     Source = "claim"
	ConfigMap Source = "configmap"
	Secret    Source = "secret"
	NFS       Source = "nfs"
	Host      Source = "host"
)

// Volume is something that is mounted in a pod.
type Volume struct {
	Source   Source
	Name     string // of the object, or the directory there
	Server   string // of NFS
	Path     string // in the pod
	ReadOnly bool
}

// String says what is mounted, and whether it can be changed.
func (v Volume) String() string {
	text := string(v.Source) + " " + v.Name + " of the cluster"
	switch v.Source {
	case NFS:
		text = "the directory " + v.Name + " of the NFS server " + v.Server
	case Host:
		text = "the directory " + v.Name + " of the cluster's machines"
	case ConfigMap, Secret:
		return text // they are never written to
	}
	if !v.ReadOnly {
		text += ", to change too,"
	}
	return text
}

var nameForm = pattern.New(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// ParseVolume reads CLAIM:/path[:ro] and SOURCE/NAME:/path[:ro].
func ParseVolume(text string) (Volume, error) {
	parts := strings.Split(text, ":")
	v := Volume{Source: Claim, Name: parts[0]}
	if len(parts) == 3 && (parts[2] == "ro" || parts[2] == "rw") {
		v.ReadOnly = parts[2] == "ro"
		parts = parts[:2]
	}
	if len(parts) != 2 || !strings.HasPrefix(parts[1], "/") || path.Clean(parts[1]) == "/" {
		return v, fmt.Errorf("%q is no volume and the absolute path that it is mounted at", text)
	}
	v.Path = path.Clean(parts[1])
	if source, rest, found := strings.Cut(v.Name, "/"); found {
		v.Source, v.Name = Source(source), rest
	}
	return v, v.check(text)
}

func (v *Volume) check(text string) error {
	switch v.Source {
	case Claim, ConfigMap, Secret:
		if !nameForm.MatchString(v.Name) {
			return fmt.Errorf("%q: %q is no name of a %s", text, v.Name, v.Source)
		}
	case NFS:
		server, export, found := strings.Cut(v.Name, "/")
		if v.Server, v.Name = server, "/"+export; !found || server == "" {
			return fmt.Errorf("%q: NFS is written nfs/SERVER/EXPORT:/path", text)
		}
	case Host:
		v.Name = path.Join("/", v.Name)
	default:
		return fmt.Errorf("%q: a volume is a claim, or configmap/, secret/, nfs/ or host/ and a name", text)
	}
	if v.Path == "/dlwb" || strings.HasPrefix(v.Path, "/dlwb/") {
		return fmt.Errorf("%q: /dlwb is dlwb's own place in a pod", text)
	}
	return nil
}

var quantityForm = pattern.New(`^[0-9]+(\.[0-9]+)?([munkMGTPE]|[KMGTPE]i)?$`)

// quantity tells what is wrong with an amount in Kubernetes' writing.
func quantity(text string) error {
	if text != "" && !quantityForm.MatchString(text) {
		return errors.New(text + " is no quantity of Kubernetes")
	}
	return nil
}
