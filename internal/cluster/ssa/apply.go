// Package ssa applies objects with server-side apply.
package ssa

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/restmapper"

	"kubeone/internal/cluster/apicall"
)

const maxParallel = 8 // objects applied in parallel

// Applier applies objects to a cluster. It discovers the API's kinds on demand.
type Applier struct {
	dynamic   dynamic.Interface
	served    discovery.ServerResourcesInterface // kept in memory; kinds is made of it
	kinds     meta.ResettableRESTMapper
	manager   string // name in managedFields
	namespace string // of namespaced objects without a namespace
}

// New returns an Applier. It makes no request.
func New(kube kubernetes.Interface, dyn dynamic.Interface) *Applier {
	served := memory.NewMemCacheClient(kube.Discovery())
	return &Applier{
		dynamic: dyn, served: served, kinds: restmapper.NewDeferredDiscoveryRESTMapper(served),
		manager: apicall.FieldManager, namespace: metav1.NamespaceDefault,
	}
}

// Served returns what the API serves. It shares what the Applier has discovered.
func (c *Applier) Served() discovery.ServerResourcesInterface { return c.served }

// As returns an Applier that applies objects as another field manager, and namespaced objects without a namespace to
// that namespace. Both share what they know about kinds.
func (c *Applier) As(manager, namespace string) *Applier {
	return &Applier{dynamic: c.dynamic, served: c.served, kinds: c.kinds, manager: manager, namespace: namespace}
}

// Result is the result of an apply.
type Result struct {
	Objects int      // number of applied objects
	Changed []string // those that were created or changed, as "Kind namespace/name", in the order of the input
}

// Apply applies objects and takes over their fields from other managers. Other fields stay. It applies Namespaces
// first, then CRDs, and waits until the API serves their kinds. Access rules, configuration and workloads follow, in
// this order. Objects in the same phase are applied in parallel.
func (c *Applier) Apply(ctx context.Context, objects []unstructured.Unstructured) (Result, error) {
	return c.applyAll(ctx, objects, func(int) bool { return true })
}

// ApplyOwn is like Apply, but does not take over fields. A conflict with another manager is an *apicall.Error of class
// Operator.
func (c *Applier) ApplyOwn(ctx context.Context, objects []unstructured.Unstructured) (Result, error) {
	return c.applyAll(ctx, objects, func(int) bool { return false })
}

// ApplyOver is like Apply for the objects with force, by index, and like ApplyOwn for the others.
func (c *Applier) ApplyOver(ctx context.Context, objects []unstructured.Unstructured, force func(i int) bool) error {
	_, err := c.applyAll(ctx, objects, force)
	return err
}

// Find returns the live object with the kind, namespace and name of o, or nil if there is none or the API does not
// serve the kind. It ignores the version of o if the API no longer serves it.
func (c *Applier) Find(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var found *unstructured.Unstructured
	err := c.withRetry(ctx, "read", o, func(ctx context.Context) error {
		where, err := c.anyVersion(o)
		if err != nil || where == nil {
			return err
		}
		found, err = where.Get(ctx, o.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			found = nil
			return nil
		}
		return err
	})
	return found, err
}

// anyVersion returns the resource of an object in its version, or in another one if that is no longer served. It
// returns nil if the API does not serve the kind at all.
func (c *Applier) anyVersion(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	where, err := c.Resource(o)
	if !meta.IsNoMatchError(err) {
		return where, err
	}
	mapping, err := c.kinds.RESTMapping(o.GroupVersionKind().GroupKind())
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	served := o.DeepCopy()
	served.SetGroupVersionKind(mapping.GroupVersionKind)
	return c.Resource(served)
}

// Lookup returns the content of the object with that kind, namespace and name, or nil if there is none. If name is "",
// it returns a list of all in the namespace, or in the cluster if that is "" too.
func (c *Applier) Lookup(ctx context.Context, apiVersion, kind, namespace, name string) (map[string]any, error) {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	if name != "" {
		found, err := c.Find(ctx, o)
		if err != nil || found == nil {
			return nil, err
		}
		return found.Object, nil
	}
	mapping, err := c.kinds.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list, err := c.dynamic.Resource(mapping.Resource).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.UnstructuredContent(), nil
}

// FindConflicts returns the error that ApplyOwn would return for the first object with a conflict, and nil if there is
// none. It changes nothing.
func (c *Applier) FindConflicts(ctx context.Context, objects []unstructured.Unstructured) error {
	for i := range objects {
		o := &objects[i]
		err := apicall.Retry(ctx, "compare", Describe(o), func(ctx context.Context) error {
			where, err := c.Resource(o)
			if err != nil {
				return err
			}
			if version, err := readVersion(ctx, where, o.GetName()); err != nil || version == "" {
				return err
			}
			_, err = where.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{
				FieldManager: c.manager, DryRun: []string{metav1.DryRunAll},
			})
			return asOperatorError(err)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// asOperatorError turns a conflict of field managers into an error of class Operator, which is not retried. It returns
// other errors unchanged.
func asOperatorError(err error) error {
	if apierrors.IsInvalid(err) && strings.Contains(err.Error(), "immutable") {
		return &apicall.Error{
			Op:    "it cannot be changed in place; delete it with kubectl, then run kubeone apply again",
			Class: apicall.Operator, Err: err,
		}
	}
	if !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return err
	}
	return &apicall.Error{
		Op:    "another program or person has changed it, and kubeone does not overwrite the change",
		Class: apicall.Operator, Err: fmt.Errorf("%w; undo that change", err),
	}
}

func (c *Applier) applyAll(ctx context.Context, objects []unstructured.Unstructured,
	force func(i int) bool) (Result, error) {
	ctx, cancel := apicall.WithDefaultTimeout(ctx, 2*apicall.OpTimeout)
	defer cancel()
	changed := make([]bool, len(objects))
	for _, phase := range groupByPhase(objects) {
		if err := c.applyPhase(ctx, objects, phase, changed, force); err != nil {
			return Result{}, err
		}
	}
	result := Result{Objects: len(objects)}
	for i, o := range objects {
		if changed[i] {
			result.Changed = append(result.Changed, Describe(&o))
		}
	}
	return result, nil
}

func (c *Applier) applyPhase(ctx context.Context, objects []unstructured.Unstructured, phase []int,
	changed []bool, force func(i int) bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxParallel)
	var lock sync.Mutex
	for _, i := range phase {
		group.Go(func() error {
			did, err := c.applyOne(ctx, &objects[i], force(i))
			lock.Lock()
			defer lock.Unlock()
			changed[i] = did
			return err
		})
	}
	return group.Wait()
}

// applyOne applies one object and reports whether this changed it. For a CRD, it waits until the API serves the kind.
func (c *Applier) applyOne(ctx context.Context, o *unstructured.Unstructured, force bool) (changed bool, err error) {
	before, hasRead := "", false
	err = apicall.Retry(ctx, "apply", Describe(o), func(ctx context.Context) error {
		where, err := c.Resource(o)
		if err != nil {
			return err
		}
		if !hasRead { // read only once: a retry after a lost answer must still report the change
			if before, err = readVersion(ctx, where, o.GetName()); err != nil {
				return err
			}
			hasRead = true
		}
		after, err := where.Apply(ctx, o.GetName(), o,
			metav1.ApplyOptions{FieldManager: c.manager, Force: force})
		if err != nil {
			return asOperatorError(err)
		}
		changed = after.GetResourceVersion() != before
		return nil
	})
	if err != nil || o.GetKind() != "CustomResourceDefinition" {
		return changed, err
	}
	return changed, c.waitEstablished(ctx, o.GetName())
}

// Preview returns the live object, and the object as it would be after an apply. It changes nothing. If the object does
// not exist, it returns nil for both. It makes a dry run only if the fields of the live object do not show that nothing
// would change; a change that an admission webhook would make does not count then.
func (c *Applier) Preview(ctx context.Context, o *unstructured.Unstructured) (current,
	planned *unstructured.Unstructured,
	err error) {
	where, err := c.Resource(o)
	if err != nil {
		return nil, nil, err
	}
	current, err = where.Get(ctx, o.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, apicall.Wrap("compare", Describe(o), err)
	}
	if hasApplied(current, o, c.manager) {
		return current, current, nil
	}
	planned, err = where.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{
		FieldManager: c.manager, Force: true, DryRun: []string{metav1.DryRunAll},
	})
	if err != nil {
		return nil, nil, apicall.Wrap("compare", Describe(o), err)
	}
	return current, planned, nil
}

// readVersion returns the resource version of an object; "" if it does not exist.
func readVersion(ctx context.Context, where dynamic.ResourceInterface, name string) (string, error) {
	have, err := where.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return have.GetResourceVersion(), nil
}

// Resource returns the client for the kind and namespace of o.
func (c *Applier) Resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	if scheme.Scheme.Recognizes(kind) && (o.GetNamespace() != "" || isClusterScoped(kind.Kind)) { // needs no discovery
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		if o.GetNamespace() == "" {
			return c.dynamic.Resource(resource), nil
		}
		return c.dynamic.Resource(resource).Namespace(o.GetNamespace()), nil
	}
	mapping, err := c.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) { // the kind may have been defined since the last discovery
		c.kinds.Reset()
		mapping, err = c.kinds.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("find the kind %s: %w", kind, err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return c.dynamic.Resource(mapping.Resource), nil
	}
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = c.namespace
	}
	return c.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

// isClusterScoped reports whether a built-in kind is cluster-scoped.
func isClusterScoped(kind string) bool {
	switch kind {
	case "Namespace", "ClusterRole", "ClusterRoleBinding", "PriorityClass":
		return true
	}
	return false
}

// Describe names an object for messages: "DaemonSet kube-system/kube-proxy".
func Describe(o *unstructured.Unstructured) string {
	if o.GetNamespace() == "" {
		return o.GetKind() + " " + o.GetName()
	}
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
}

// groupByPhase groups the indices of objects by phase, in order.
func groupByPhase(objects []unstructured.Unstructured) [][]int {
	byPhase := make([][]int, lastPhase+1)
	for i, o := range objects {
		p := phaseOf(o.GetKind())
		byPhase[p] = append(byPhase[p], i)
	}
	return byPhase
}

const lastPhase = 7

// phaseOf returns the phase in which objects of a kind are applied. Objects that others refer to come first.
func phaseOf(kind string) int {
	switch kind {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	case "ServiceAccount", "Role", "ClusterRole", "PriorityClass", "RuntimeClass", "StorageClass", "ResourceQuota",
		"LimitRange":
		return 2
	case "RoleBinding", "ClusterRoleBinding":
		return 3
	case "ConfigMap", "Secret", "Service", "PersistentVolume", "PersistentVolumeClaim", "NetworkPolicy",
		"PodDisruptionBudget":
		return 4
	case "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "CronJob", "Pod", "HorizontalPodAutoscaler":
		return 5
	case "ValidatingAdmissionPolicyBinding":
		return lastPhase // clients with limited permissions can bind only an existing policy
	}
	return lastPhase - 1 // custom resources, webhooks and API services need workloads or kinds
}

// waitEstablished waits until the API serves the kind that a CRD defines.
func (c *Applier) waitEstablished(ctx context.Context, name string) error {
	crds := schema.GroupVersionResource{
		Group:    "apiextensions.k8s.io",
		Version:  "v1",
		Resource: "customresourcedefinitions",
	}
	err := apicall.Await(ctx, c.dynamic.Resource(crds), "wait for CustomResourceDefinition", name, isEstablished)
	c.kinds.Reset()
	return err
}

func isEstablished(crd *unstructured.Unstructured) (bool, string, error) {
	found, _, err := unstructured.NestedFieldNoCopy(crd.Object, "status", "conditions")
	if err != nil {
		return false, "", err
	}
	conditions, _ := found.([]any) // null in a new definition
	for _, one := range conditions {
		condition, ok := one.(map[string]any)
		if ok && condition["type"] == "Established" {
			return condition["status"] == "True", fmt.Sprint(condition["message"]), nil
		}
	}
	return false, "it is not established", nil
}
