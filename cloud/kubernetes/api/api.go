// Package api asks a Kubernetes API server about the few kinds of objects that dlwb
// has to do with, by client-go's REST client. client-go's own typed clients know all
// kinds of all groups and build tables of them whenever the program starts, whatever
// it is started for: every command would wait for them.
package api

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"

	apps "k8s.io/api/apps/v1"
	authorization "k8s.io/api/authorization/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// tables are what is known of the kinds: how they are written, and how options
// become the query of a URL.
type tables struct {
	codecs     serializer.CodecFactory
	parameters runtime.ParameterCodec
}

var known = sync.OnceValue(func() tables {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{core.AddToScheme, apps.AddToScheme, authorization.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two kinds of one name: the program is wrong
		}
	}
	meta.AddToGroupVersion(s, schema.GroupVersion{Version: "v1"})
	return tables{serializer.NewCodecFactory(s), runtime.NewParameterCodec(s)}
})

// Client asks one API server.
type Client struct{ core, apps, auth rest.Interface }

// New makes a client. It asks nobody anything.
func New(config *rest.Config, by *http.Client) (*Client, error) {
	c := &Client{}
	for _, g := range []struct {
		version schema.GroupVersion
		path    string
		into    *rest.Interface
	}{
		{core.SchemeGroupVersion, "/api", &c.core},
		{apps.SchemeGroupVersion, "/apis", &c.apps},
		{authorization.SchemeGroupVersion, "/apis", &c.auth},
	} {
		one := rest.CopyConfig(config)
		one.GroupVersion, one.APIPath = &g.version, g.path
		one.NegotiatedSerializer = known().codecs.WithoutConversion()
		client, err := rest.RESTClientForConfigAndClient(one, by)
		if err != nil {
			return nil, err
		}
		*g.into = client
	}
	return c, nil
}

// object is a pointer to a kind's Go type.
type object[T any] interface {
	*T
	runtime.Object
}

// Objects are those of one kind in one namespace; in all of them, or of the cluster,
// where the namespace is empty.
type Objects[T, L any, O object[T], M object[L]] struct {
	client    rest.Interface
	resource  string
	namespace string
}

func (o Objects[T, L, O, M]) at(r *rest.Request, options runtime.Object) *rest.Request {
	return r.NamespaceIfScoped(o.namespace, o.namespace != "").Resource(o.resource).VersionedParams(options, known().parameters)
}

// Get reads one object.
func (o Objects[T, L, O, M]) Get(ctx context.Context, name string, options meta.GetOptions) (*T, error) {
	one := new(T)
	return one, o.at(o.client.Get(), &options).Name(name).Do(ctx).Into(O(one))
}

// List reads those that the options select.
func (o Objects[T, L, O, M]) List(ctx context.Context, options meta.ListOptions) (*L, error) {
	all := new(L)
	return all, o.at(o.client.Get(), &options).Do(ctx).Into(M(all))
}

// Watch follows those that the options select until the context ends.
func (o Objects[T, L, O, M]) Watch(ctx context.Context, options meta.ListOptions) (watch.Interface, error) {
	options.Watch = true
	return o.at(o.client.Get(), &options).Watch(ctx)
}

// Create makes an object and gives it as the server has it.
func (o Objects[T, L, O, M]) Create(ctx context.Context, one *T, options meta.CreateOptions) (*T, error) {
	made := new(T)
	return made, o.at(o.client.Post(), &options).Body(O(one)).Do(ctx).Into(O(made))
}

// Patch changes one object.
func (o Objects[T, L, O, M]) Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, options meta.PatchOptions) (*T, error) {
	one := new(T)
	return one, o.at(o.client.Patch(kind), &options).Name(name).Body(patch).Do(ctx).Into(O(one))
}

// Delete deletes one object.
func (o Objects[T, L, O, M]) Delete(ctx context.Context, name string, options meta.DeleteOptions) error {
	return o.client.Delete().NamespaceIfScoped(o.namespace, o.namespace != "").Resource(o.resource).Name(name).Body(&options).Do(ctx).Error()
}

// The kinds.
type (
	// Pods are pods.
	Pods = Objects[core.Pod, core.PodList, *core.Pod, *core.PodList]
	// Nodes are nodes.
	Nodes = Objects[core.Node, core.NodeList, *core.Node, *core.NodeList]
	// Events are events.
	Events = Objects[core.Event, core.EventList, *core.Event, *core.EventList]
	// Secrets are secrets.
	Secrets = Objects[core.Secret, core.SecretList, *core.Secret, *core.SecretList]
	// Services are services.
	Services = Objects[core.Service, core.ServiceList, *core.Service, *core.ServiceList]
	// Namespaces are namespaces.
	Namespaces = Objects[core.Namespace, core.NamespaceList, *core.Namespace, *core.NamespaceList]
	// ConfigMaps are config maps.
	ConfigMaps = Objects[core.ConfigMap, core.ConfigMapList, *core.ConfigMap, *core.ConfigMapList]
	// Quotas are resource quotas.
	Quotas = Objects[core.ResourceQuota, core.ResourceQuotaList, *core.ResourceQuota, *core.ResourceQuotaList]
	// LimitRanges are limits of the containers of a namespace.
	LimitRanges = Objects[core.LimitRange, core.LimitRangeList, *core.LimitRange, *core.LimitRangeList]
	// Claims are claims of persistent volumes.
	Claims = Objects[core.PersistentVolumeClaim, core.PersistentVolumeClaimList, *core.PersistentVolumeClaim, *core.PersistentVolumeClaimList]
	// Deployments are deployments.
	Deployments = Objects[apps.Deployment, apps.DeploymentList, *apps.Deployment, *apps.DeploymentList]
)

// Pods are the pods of a namespace.
func (c *Client) Pods(namespace string) Pods { return Pods{c.core, "pods", namespace} }

// Nodes are the nodes of the cluster.
func (c *Client) Nodes() Nodes { return Nodes{c.core, "nodes", ""} }

// Events are the events of a namespace.
func (c *Client) Events(namespace string) Events { return Events{c.core, "events", namespace} }

// Secrets are the secrets of a namespace.
func (c *Client) Secrets(namespace string) Secrets { return Secrets{c.core, "secrets", namespace} }

// Services are the services of a namespace.
func (c *Client) Services(namespace string) Services { return Services{c.core, "services", namespace} }

// Namespaces are the namespaces of the cluster.
func (c *Client) Namespaces() Namespaces { return Namespaces{c.core, "namespaces", ""} }

// ConfigMaps are the config maps of a namespace.
func (c *Client) ConfigMaps(namespace string) ConfigMaps {
	return ConfigMaps{c.core, "configmaps", namespace}
}

// ResourceQuotas are the quotas of a namespace.
func (c *Client) ResourceQuotas(namespace string) Quotas {
	return Quotas{c.core, "resourcequotas", namespace}
}

// LimitRanges are the limits of a namespace.
func (c *Client) LimitRanges(namespace string) LimitRanges {
	return LimitRanges{c.core, "limitranges", namespace}
}

// PersistentVolumeClaims are the claims of a namespace.
func (c *Client) PersistentVolumeClaims(namespace string) Claims {
	return Claims{c.core, "persistentvolumeclaims", namespace}
}

// Deployments are the deployments of a namespace; of all, where it is empty.
func (c *Client) Deployments(namespace string) Deployments {
	return Deployments{c.apps, "deployments", namespace}
}

// Log reads the log of a pod.
func (c *Client) Log(ctx context.Context, namespace, pod string, o *core.PodLogOptions) (io.ReadCloser, error) {
	return c.Pods(namespace).at(c.core.Get(), o).Name(pod).SubResource("log").Stream(ctx)
}

// ExecURL is where a command is run in a pod.
func (c *Client) ExecURL(namespace, pod string, o *core.PodExecOptions) *url.URL {
	return c.Pods(namespace).at(c.core.Post(), o).Name(pod).SubResource("exec").URL()
}

// Allowed asks whether the caller may do something.
func (c *Client) Allowed(ctx context.Context, what *authorization.ResourceAttributes) (bool, error) {
	review := &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{ResourceAttributes: what}}
	err := c.auth.Post().Resource("selfsubjectaccessreviews").VersionedParams(&meta.CreateOptions{}, known().parameters).Body(review).Do(ctx).Into(review)
	return review.Status.Allowed, err
}

// Groups are the groups of objects that the server has, but for the core.
func (c *Client) Groups(ctx context.Context) ([]meta.APIGroup, error) {
	all := &meta.APIGroupList{}
	err := c.core.Get().AbsPath("/apis").Do(ctx).Into(all)
	return all.Groups, err
}

// Resources are the resources of a version of a group.
func (c *Client) Resources(ctx context.Context, version schema.GroupVersion) ([]meta.APIResource, error) {
	all := &meta.APIResourceList{}
	err := c.core.Get().AbsPath("/apis", version.Group, version.Version).Do(ctx).Into(all)
	return all.APIResources, err
}

// Version asks the server for its version, which it tells whoever may speak to it.
func (c *Client) Version(ctx context.Context) error {
	return c.core.Get().AbsPath("/version").Do(ctx).Error()
}
