package kubernetes

import (
	"maps"
	"slices"

	"k8s.io/client-go/tools/clientcmd"
)

// Known implements cloud.Knower: the contexts of the user's kubeconfig, and the
// namespaces that these name.
func (*Provider) Known(key string) (known []string) {
	raw, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return nil
	}
	switch key {
	case "machines.context":
		return slices.Sorted(maps.Keys(raw.Contexts))
	case "machines.namespace":
		for _, c := range raw.Contexts {
			if c.Namespace != "" {
				known = append(known, c.Namespace)
			}
		}
		slices.Sort(known)
	}
	return slices.Compact(known)
}
