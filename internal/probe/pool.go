package probe

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/internal/cluster/machines"
	"kubeone/internal/locks/leaselock"
	"kubeone/internal/model/observed"
)

// maxObjects limits the objects of one kind that are read.
const maxObjects = 1000

// readPoolObjects reads Machines and related objects. It reads nothing if the cluster does not have the kind Machine.
// It records API errors instead of returning them, because a broken definition of another program must not make the
// rest of the API unreadable.
func (r *reader) readPoolObjects(ctx context.Context, api *observed.API) error {
	err := r.readPool(ctx, api)
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		api.Pool = &observed.Pool{Problem: oneLine(err)}
		return nil
	}
	return err
}

func (r *reader) readPool(ctx context.Context, api *observed.API) error {
	found, err := r.listObjects(ctx, machines.Machines())
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var deployments, sets, hosts list
	pool := &observed.Pool{}
	group, within := errgroup.WithContext(ctx)
	for kind, into := range map[schema.GroupVersionResource]*list{
		machines.Deployments(): &deployments, machines.Sets(): &sets, machines.Hosts(): &hosts,
	} {
		group.Go(func() error {
			got, err := r.listObjects(within, kind)
			if apierrors.IsNotFound(err) { // Machines of another program, which has no Hosts
				return nil
			}
			*into = got
			return err
		})
	}
	group.Go(func() error { return r.readControllers(within, pool) })
	group.Go(func() error { return r.compareCredentials(within, pool) })
	group.Go(func() (err error) {
		pool.Foreign, err = r.foreignDefinitions(within)
		return err
	})
	if err := group.Wait(); err != nil {
		return err
	}
	for _, o := range deployments.items {
		pool.Deployments = append(pool.Deployments, newDeployment(o))
	}
	owners, has := newDeployments(sets), map[string]string{}
	for _, o := range hosts.items {
		h := newPoolHost(o)
		pool.Hosts = append(pool.Hosts, h)
		if uid := o.textAt("status", "claim", "uid"); uid != "" {
			has[uid] = h.Name
		}
	}
	for _, o := range found.items {
		m := newMachine(o, owners)
		if m.Provider == v1alpha1.ProviderStatic {
			continue // it is a host of the manifest
		}
		m.Host = has[string(o.GetUID())]
		pool.Machines = append(pool.Machines, m)
	}
	pool.Sets = len(sets.items)
	pool.More = found.more || deployments.more || sets.more || hosts.more
	api.Pool = pool
	return nil
}

// readControllers records whether the controllers for Machines are running, that is, have a leader.
func (r *reader) readControllers(ctx context.Context, pool *observed.Pool) error {
	lease, err := r.kube.CoordinationV1().Leases(machines.Namespace).Get(ctx, machines.Lease, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	pool.Controllers = observed.No
	if err == nil {
		_, _, live := leaselock.State(lease, r.now)
		pool.Controllers = observed.Of(live)
	}
	return nil
}

// foreignDefinitions returns the names of our custom resource definitions that another program has installed.
func (r *reader) foreignDefinitions(ctx context.Context) ([]string, error) {
	var out []string
	for _, name := range machines.DefinitionNames() {
		definition, err := r.dynamic.Resource(machines.Definitions()).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if _, ours := machines.Revision(definition); !ours {
			out = append(out, name)
		}
	}
	return out, nil
}

// compareCredentials records whether the stored credentials for Machine hosts are the credentials of the caller. It
// keeps neither.
func (r *reader) compareCredentials(ctx context.Context, pool *observed.Pool) error {
	if r.kept == nil {
		return nil
	}
	secret, err := r.kube.CoreV1().Secrets(machines.Namespace).Get(ctx, machines.CredentialsSecret, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		pool.Credentials = observed.Of(r.kept(nil))
		return nil
	case err != nil:
		return err
	case secret.Data == nil:
		secret.Data = map[string][]byte{} // it exists
	}
	pool.Credentials = observed.Of(r.kept(secret.Data))
	return nil
}

// object reads fields only if they have the expected type. Other programs define the same kinds, and an unexpected
// object must not make the whole API unreadable.
type object struct{ unstructured.Unstructured }

// list is the objects of a kind.
type list struct {
	items []object // by namespace and name
	more  bool
}

func (r *reader) listObjects(ctx context.Context, kind schema.GroupVersionResource) (list, error) {
	got, err := r.dynamic.Resource(kind).List(ctx, metav1.ListOptions{Limit: maxObjects})
	if err != nil {
		return list{}, err
	}
	out := list{more: got.GetContinue() != "" || len(got.Items) > maxObjects}
	for _, item := range got.Items[:min(len(got.Items), maxObjects)] {
		out.items = append(out.items, object{item})
	}
	slices.SortFunc(out.items, func(a, b object) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
	return out, nil
}

// textAt returns a text field of the object; "" if there is none.
func (o object) textAt(path ...string) string {
	text, _, err := unstructured.NestedString(o.Object, path...)
	if err != nil {
		return ""
	}
	return boundText(text)
}

// versionAt returns a version without v.
func (o object) versionAt(path ...string) string { return strings.TrimPrefix(o.textAt(path...), "v") }

// numberAt returns a number field of the object, or ifNone if there is none.
func (o object) numberAt(ifNone int, path ...string) int {
	n, found, err := unstructured.NestedInt64(o.Object, path...)
	if err != nil || !found {
		return ifNone
	}
	return int(n)
}

// ownerOfKind returns the name of the owner of that kind that controls the object, or "" if there is none.
func (o object) ownerOfKind(kind string) string {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == kind && ref.Controller != nil && *ref.Controller {
			return boundText(ref.Name)
		}
	}
	return ""
}

func newDeployment(o object) observed.MachineDeployment {
	return observed.MachineDeployment{
		Namespace: boundText(o.GetNamespace()), Name: boundText(o.GetName()), Deleting: o.GetDeletionTimestamp() != nil,
		Kubelet:  o.versionAt("spec", "template", "spec", "versions", "kubelet"),
		Replicas: o.numberAt(1, "spec", "replicas"), Ready: o.numberAt(0, "status", "readyReplicas"),
		Updated: o.numberAt(0, "status", "updatedReplicas"),
	}
}

// newDeployments returns the name of the MachineDeployment that owns each MachineSet, by namespace and name of the set.
func newDeployments(sets list) map[[2]string]string {
	out := map[[2]string]string{}
	for _, o := range sets.items {
		if owner := o.ownerOfKind("MachineDeployment"); owner != "" {
			out[[2]string{o.GetNamespace(), boundText(o.GetName())}] = owner
		}
	}
	return out
}

// newMachine returns the facts about a Machine, without its host: the Host object names the Machine.
func newMachine(o object, deployments map[[2]string]string) observed.Machine {
	m := observed.Machine{
		Namespace: boundText(o.GetNamespace()), Name: boundText(o.GetName()), Deleting: o.GetDeletionTimestamp() != nil,
		Provider: o.textAt("spec", "providerSpec", "value", "cloudProvider"),
		Phase:    o.textAt("status", "phase"), Node: o.textAt("status", "nodeRef", "name"),
		WantedKubelet: o.versionAt("spec", "versions", "kubelet"),
		Kubelet:       o.versionAt("status", "versions", "kubelet"),
		Error:         o.textAt("status", "errorMessage"),
	}
	if set := o.ownerOfKind("MachineSet"); set != "" {
		m.Owner = "MachineSet " + set
		if deployment := deployments[[2]string{o.GetNamespace(), set}]; deployment != "" {
			m.Owner = "MachineDeployment " + deployment
		}
	}
	if m.Error == "" {
		m.Waits = o.whyNotReady()
	}
	return m
}

// whyNotReady returns why a Machine is not ready, from the first condition that gives a reason, or "" if it is ready.
func (o object) whyNotReady() string {
	conditions, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return ""
	}
	for _, kind := range []string{"Allocated", "Ready"} {
		for _, c := range conditions {
			fields, ok := c.(map[string]any)
			if !ok || fields["type"] != kind || fields["status"] == string(metav1.ConditionTrue) {
				continue
			}
			said := object{unstructured.Unstructured{Object: fields}}
			return strings.Trim(boundText(said.textAt("reason")+": "+said.textAt("message")), ": ")
		}
	}
	return ""
}

func newPoolHost(o object) observed.PoolHost {
	h := observed.PoolHost{
		Name: boundText(o.GetName()), Address: o.textAt("spec", "address"),
		State: cmp.Or(o.textAt("status", "state"), "Free"), Message: o.textAt("status", "message"),
	}
	if name := o.textAt("status", "claim", "name"); name != "" {
		h.Machine = o.textAt("status", "claim", "namespace") + "/" + name
	}
	return h
}
