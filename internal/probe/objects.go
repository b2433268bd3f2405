package probe

import (
	"maps"
	"net/netip"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"kubeone/internal/cluster/nodes"
	"kubeone/internal/host"
	"kubeone/internal/locks/leaselock"
	"kubeone/internal/model/observed"
)

// nodeOf cleans the texts that the API takes as they are: a kubelet writes what it likes into its own Node.
func nodeOf(n corev1.Node) observed.Node {
	_, controlPlane := n.Labels[nodes.ControlPlaneLabel]
	out := observed.Node{
		Name: told(n.Name), Unschedulable: n.Spec.Unschedulable, ControlPlane: controlPlane,
		KubeletVersion: strings.TrimPrefix(told(n.Status.NodeInfo.KubeletVersion), "v"),
		Runtime:        told(n.Status.NodeInfo.ContainerRuntimeVersion),
		MachineID:      told(n.Status.NodeInfo.MachineID),
		Labels:         n.Labels, Annotations: maps.Clone(n.Annotations),
	}
	for key, value := range out.Annotations {
		out.Annotations[key] = host.Printed(value)
	}
	for _, a := range n.Status.Addresses {
		out.Addresses = append(out.Addresses, told(a.Address))
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Ready = tri(c.Status)
		}
	}
	for _, t := range n.Spec.Taints {
		out.Taints = append(out.Taints, observed.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	return out
}

func tri(s corev1.ConditionStatus) observed.Tri {
	switch s {
	case corev1.ConditionTrue:
		return observed.Yes
	case corev1.ConditionFalse:
		return observed.No
	}
	return observed.Unknown
}

// podOf takes of a static pod no label but "component", as kubeadm's have it: its kubelet writes what it likes there,
// and it would be taken for a part of the cluster that a DaemonSet or a Deployment brings.
func podOf(p corev1.Pod) observed.Pod {
	out := observed.Pod{Namespace: p.Namespace, Name: p.Name, Node: told(p.Spec.NodeName), Ready: observed.No}
	labels := []string{"k8s-app", "component", "app"}
	if _, static := p.Annotations[corev1.MirrorPodAnnotationKey]; static {
		labels = labels[1:2]
	}
	for _, label := range labels {
		if out.App == "" {
			out.App = p.Labels[label]
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			out.Ready = tri(c.Status)
		}
	}
	if ip, err := netip.ParseAddr(p.Status.PodIP); err == nil && !p.Spec.HostNetwork {
		out.Address = ip.WithZone("").String()
	}
	for _, s := range p.Status.ContainerStatuses {
		out.Restarts += int(s.RestartCount)
	}
	if len(p.Spec.Containers) > 0 {
		out.Image = told(p.Spec.Containers[0].Image)
	}
	return out
}

// lockOf reads our lease as of now, the operator's clock; nil when nobody holds it.
func lockOf(l *coordinationv1.Lease, now time.Time) *observed.Lock {
	holder, since, live := leaselock.State(l, now)
	if holder.Name == "" {
		return nil
	}
	lock := &observed.Lock{Holder: holder.Name, RunID: holder.RunID, Since: since.UTC(), Live: live}
	if l.Spec.LeaseTransitions != nil {
		lock.Generation = int64(*l.Spec.LeaseTransitions)
	}
	return lock
}
