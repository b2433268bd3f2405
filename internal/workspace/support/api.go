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

// maxObjects is the maximum number of objects to list of each kind.
const maxObjects = 5000

// addAPI adds data from the API as tables. Whole objects are left out, because they contain environment variables and
// annotations.
func (b *bundle) addAPI(ctx context.Context, in Input) {
	if in.Kubernetes == nil {
		b.noteMissing("api", in.NoAPI)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, in.Timeout)
	defer cancel()
	for _, list := range []struct {
		file  string
		table func(context.Context, kubernetes.Interface, time.Time) ([]string, error)
	}{
		{"api/nodes.txt", listNodes}, {"api/pods.txt", listPods}, {"api/events.txt", listEvents},
		{"api/workloads.txt", listWorkloads},
		{"api/csrs.txt", listCSRs},
	} {
		rows, err := list.table(ctx, in.Kubernetes, b.now)
		if err != nil {
			b.noteMissing(list.file, err.Error())
			continue
		}
		b.addFile(list.file, alignTable(rows))
	}
}

// alignTable formats rows with tab-separated cells as a table.
func alignTable(rows []string) []byte {
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, row)
	}
	_ = w.Flush() // into memory
	return out.Bytes()
}

func tableRow(cells ...any) string {
	out := make([]string, len(cells))
	for i, c := range cells {
		out[i] = strings.NewReplacer("\t", " ", "\n", " ").Replace(fmt.Sprint(c))
	}
	return strings.Join(out, "\t")
}

func formatAge(now time.Time, since metav1.Time) string {
	if since.IsZero() {
		return "-"
	}
	return now.Sub(since.Time).Round(time.Second).String()
}

func limitedList() metav1.ListOptions { return metav1.ListOptions{Limit: maxObjects} }

func listNodes(ctx context.Context, api kubernetes.Interface, now time.Time) ([]string, error) {
	list, err := api.CoreV1().Nodes().List(ctx, limitedList())
	if err != nil {
		return nil, err
	}
	rows := []string{tableRow("NAME", "AGE", "UNSCHEDULABLE", "KUBELET", "RUNTIME", "KERNEL", "TAINTS", "CONDITIONS")}
	for _, n := range list.Items {
		var conditions, taints []string
		for _, c := range n.Status.Conditions {
			conditions = append(conditions, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
		}
		for _, t := range n.Spec.Taints {
			taints = append(taints, t.Key+":"+string(t.Effect))
		}
		i := n.Status.NodeInfo
		rows = append(rows,
			tableRow(n.Name, formatAge(now, n.CreationTimestamp), n.Spec.Unschedulable, i.KubeletVersion,
				i.ContainerRuntimeVersion, i.KernelVersion,
				strings.Join(taints, ","), strings.Join(conditions, "; ")))
	}
	return rows, nil
}

func listPods(ctx context.Context, api kubernetes.Interface, now time.Time) ([]string, error) {
	list, err := api.CoreV1().Pods(metav1.NamespaceAll).List(ctx, limitedList())
	if err != nil {
		return nil, err
	}
	rows := []string{tableRow("NAMESPACE", "NAME", "PHASE", "READY", "RESTARTS", "AGE", "NODE", "IMAGES", "REASON")}
	for _, p := range list.Items {
		rows = append(rows, podRow(p, now))
	}
	return rows, nil
}

func podRow(p corev1.Pod, now time.Time) string {
	ready, restarts := 0, int32(0)
	var images, reasons []string
	for _, c := range p.Spec.Containers {
		images = append(images, c.Image)
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		restarts += c.RestartCount
		switch {
		case c.Ready:
			ready++
		case c.State.Waiting != nil:
			reasons = append(reasons, c.Name+" "+c.State.Waiting.Reason+" "+c.State.Waiting.Message)
		case c.State.Terminated != nil:
			reasons = append(reasons, fmt.Sprintf("%s %s %d", c.Name, c.State.Terminated.Reason, c.State.Terminated.ExitCode))
		}
	}
	if p.Status.Message != "" {
		reasons = append(reasons, p.Status.Message)
	}
	return tableRow(p.Namespace, p.Name, p.Status.Phase, fmt.Sprintf("%d/%d", ready, len(p.Spec.Containers)), restarts,
		formatAge(now, p.CreationTimestamp),
		p.Spec.NodeName, strings.Join(images, ","), strings.Join(reasons, "; "))
}

func listEvents(ctx context.Context, api kubernetes.Interface, now time.Time) ([]string, error) {
	list, err := api.CoreV1().Events(metav1.NamespaceAll).List(ctx, limitedList())
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return lastSeen(a).Compare(lastSeen(b).Time) })
	rows := []string{tableRow("AGO", "NAMESPACE", "TYPE", "REASON", "TIMES", "FROM", "OBJECT", "MESSAGE")}
	for _, e := range list.Items {
		from := e.ReportingController
		if from == "" {
			from = e.Source.Component
		}
		rows = append(rows, tableRow(formatAge(now, lastSeen(e)), e.Namespace, e.Type, e.Reason, e.Count, from,
			e.InvolvedObject.Kind+"/"+e.InvolvedObject.Name, e.Message))
	}
	return rows, nil
}

// lastSeen returns when an Event last occurred. Different clients use different fields for it.
func lastSeen(e corev1.Event) metav1.Time {
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

func listWorkloads(ctx context.Context, api kubernetes.Interface, now time.Time) ([]string, error) {
	rows := []string{tableRow("KIND", "NAMESPACE", "NAME", "DESIRED", "READY", "UPDATED", "AGE")}
	deployments, err := api.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, limitedList())
	if err != nil {
		return nil, err
	}
	for _, d := range deployments.Items {
		replicas := int32(1)
		if d.Spec.Replicas != nil {
			replicas = *d.Spec.Replicas
		}
		rows = append(rows, tableRow("Deployment", d.Namespace, d.Name, replicas, d.Status.ReadyReplicas,
			d.Status.UpdatedReplicas, formatAge(now, d.CreationTimestamp)))
	}
	sets, err := api.AppsV1().DaemonSets(metav1.NamespaceAll).List(ctx, limitedList())
	if err != nil {
		return nil, err
	}
	for _, d := range sets.Items {
		rows = append(rows,
			tableRow("DaemonSet", d.Namespace, d.Name, d.Status.DesiredNumberScheduled, d.Status.NumberReady,
				d.Status.UpdatedNumberScheduled, formatAge(now, d.CreationTimestamp)))
	}
	budgets, err := api.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, limitedList())
	if err != nil {
		return nil, err
	}
	for _, d := range budgets.Items {
		rows = append(rows, tableRow("PodDisruptionBudget", d.Namespace, d.Name, d.Status.DesiredHealthy,
			d.Status.CurrentHealthy, fmt.Sprint(d.Status.DisruptionsAllowed, " disruptions allowed"),
			formatAge(now, d.CreationTimestamp)))
	}
	return rows, nil
}

func listCSRs(ctx context.Context, api kubernetes.Interface, now time.Time) ([]string, error) {
	list, err := api.CertificatesV1().CertificateSigningRequests().List(ctx, limitedList())
	if err != nil {
		return nil, err
	}
	rows := []string{tableRow("NAME", "AGE", "SIGNER", "REQUESTOR", "CONDITIONS")}
	for _, c := range list.Items {
		var conditions []string
		for _, one := range c.Status.Conditions {
			conditions = append(conditions, string(one.Type)+" "+one.Reason)
		}
		rows = append(rows, tableRow(c.Name, formatAge(now, c.CreationTimestamp), c.Spec.SignerName, c.Spec.Username,
			strings.Join(conditions, ",")))
	}
	return rows, nil
}
