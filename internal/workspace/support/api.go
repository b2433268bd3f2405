package support

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// mostObjects is how many objects of a kind are listed.
const mostObjects = 5000

// fromAPI adds what the API knows, as tables: objects themselves hold environment variables and annotations.
func (b *bundle) fromAPI(ctx context.Context, in Input) {
	if in.Kubernetes == nil {
		b.lacks("api", in.NoAPI)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, in.Timeout)
	defer cancel()
	for _, list := range []struct {
		file  string
		table func(context.Context, kubernetes.Interface, time.Time) ([]string, error)
	}{
		{"api/nodes.txt", nodes}, {"api/pods.txt", pods}, {"api/events.txt", events}, {"api/workloads.txt", workloads},
		{"api/csrs.txt", csrs},
	} {
		rows, err := list.table(ctx, in.Kubernetes, b.now)
		if err != nil {
			b.lacks(list.file, err.Error())
			continue
		}
		b.add(list.file, aligned(rows))
	}
}

// aligned is rows, whose cells are divided by tabs, as a table.
func aligned(rows []string) []byte {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, row)
	}
	_ = w.Flush() // into memory
	return out.Bytes()
}

func row(cells ...any) string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = strings.NewReplacer("\t", " ", "\n", " ").Replace(fmt.Sprint(c))
	}
	return strings.Join(out, "\t")
}

func age(now time.Time, since metav1.Time) string {
	if since.IsZero() {
		return "-"
	}
	return now.Sub(since.Time).Round(time.Second).String()
}

func limited() metav1.ListOptions { return metav1.ListOptions{Limit: mostObjects} }

func nodes(ctx context.Context, api kubernetes.Interface, now time.Time) ([]string, error) {
	list, err := api.CoreV1().Nodes().List(ctx, limited())
	if err != nil {
		return nil, err
	}
	rows := []string{row("NAME", "AGE", "CLOSED", "KUBELET", "RUNTIME", "KERNEL", "TAINTS", "CONDITIONS")}
	for _, n := range list.Items {
		var conditions, taints []string
		for _, c := range n.Status.Conditions {
			conditions = append(conditions, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
		}
		for _, t := range n.Spec.Taints {
			taints = append(taints, t.Key+":"+string(t.Effect))
		}
		i := n.Status.NodeInfo
		rows = append(rows, row(n.Name, age(now, n.CreationTimestamp), n.Spec.Unschedulable, i.KubeletVersion,
			i.ContainerRuntimeVersion, i.KernelVersion,
			strings.Join(taints, ","), strings.Join(conditions, "; ")))
	}
	return rows, nil
}

func pods(ctx context.Context, api kubernetes.Interface, now time.Time) ([]string, error) {
	list, err := api.CoreV1().Pods(metav1.NamespaceAll).List(ctx, limited())
	if err != nil {
		return nil, err
	}
	rows := []string{row("NAMESPACE", "NAME", "PHASE", "READY", "RESTARTS", "AGE", "NODE", "IMAGES", "WHY")}
	for _, p := range list.Items {
		rows = append(rows, podRow(p, now))
	}
	return rows, nil
}

func podRow(p corev1.Pod, now time.Time) string {
	ready, restarts := 0, int32(0)
	var images, why []string
	for _, c := range p.Spec.Containers {
		images = append(images, c.Image)
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		restarts += c.RestartCount
		switch {
		case c.Ready:
			ready++
		case c.State.Waiting != nil:
			why = append(why, c.Name+" "+c.State.Waiting.Reason+" "+c.State.Waiting.Message)
		case c.State.Terminated != nil:
			why = append(why, fmt.Sprintf("%s %s %d", c.Name, c.State.Terminated.Reason, c.State.Terminated.ExitCode))
		}
	}
	if p.Status.Message != "" {
		why = append(why, p.Status.Message)
	}
	return row(p.Namespace, p.Name, p.Status.Phase, fmt.Sprintf("%d/%d", ready, len(p.Spec.Containers)), restarts,
		age(now, p.CreationTimestamp),
		p.Spec.NodeName, strings.Join(images, ","), strings.Join(why, "; "))
}

func events(ctx context.Context, api kubernetes.Interface, now time.Time) ([]string, error) {
	list, err := api.CoreV1().Events(metav1.NamespaceAll).List(ctx, limited())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return when(a).Compare(when(b).Time) })
	rows := []string{row("AGO", "NAMESPACE", "TYPE", "REASON", "TIMES", "FROM", "OBJECT", "MESSAGE")}
	for _, e := range list.Items {
		from := e.ReportingController
		if from == "" {
			from = e.Source.Component
		}
		rows = append(rows, row(age(now, when(e)), e.Namespace, e.Type, e.Reason, e.Count, from,
			e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name, e.Message))
	}
	return rows, nil
}

// when is when an Event happened last, in whichever of its fields that is.
func when(e corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.Time(e.Series.LastObservedTime)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.Time(e.EventTime)
	}
	return e.CreationTimestamp
}

func workloads(ctx context.Context, api kubernetes.Interface, now time.Time) ([]string, error) {
	rows := []string{row("KIND", "NAMESPACE", "NAME", "WANTED", "READY", "UPDATED", "AGE")}
	deployments, err := api.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, limited())
	if err != nil {
		return nil, err
	}
	for _, d := range deployments.Items {
		wanted := int32(1)
		if d.Spec.Replicas != nil {
			wanted = *d.Spec.Replicas
		}
		rows = append(rows, row("Deployment", d.Namespace, d.Name, wanted, d.Status.ReadyReplicas,
			d.Status.UpdatedReplicas, age(now, d.CreationTimestamp)))
	}
	sets, err := api.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, limited())
	if err != nil {
		return nil, err
	}
	for _, d := range sets.Items {
		rows = append(rows, row("DaemonSet", d.Namespace, d.Name, d.Status.DesiredNumberScheduled, d.Status.NumberReady,
			d.Status.UpdatedNumberScheduled, age(now, d.CreationTimestamp)))
	}
	budgets, err := api.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, limited())
	if err != nil {
		return nil, err
	}
	for _, d := range budgets.Items {
		rows = append(rows, row("PodDisruptionBudget", d.Namespace, d.Name, d.Status.DesiredHealthy,
			d.Status.CurrentHealthy, fmt.Sprint(d.Status.DisruptionsAllowed, " may go"), age(now, d.CreationTimestamp)))
	}
	return rows, nil
}

func csrs(ctx context.Context, api kubernetes.Interface, now time.Time) ([]string, error) {
	list, err := api.CertificatesV1().CertificateSigningRequests().List(ctx, limited())
	if err != nil {
		return nil, err
	}
	rows := []string{row("NAME", "AGE", "SIGNER", "REQUESTOR", "CONDITIONS")}
	for _, c := range list.Items {
		var conditions []string
		for _, one := range c.Status.Conditions {
			conditions = append(conditions, string(one.Type)+" "+one.Reason)
		}
		rows = append(rows, row(c.Name, age(now, c.CreationTimestamp), c.Spec.SignerName, c.Spec.Username,
			strings.Join(conditions, ",")))
	}
	return rows, nil
}
