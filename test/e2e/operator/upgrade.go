package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"kubeone/internal/plan"
	"kubeone/test/e2e/load"
)

// Plan returns kubeone's current plan.
func (o *Operator) Plan(ctx context.Context) (plan.Plan, error) {
	var p plan.Plan
	r := o.Run(ctx, "plan", "-o", "json")
	if err := json.Unmarshal([]byte(r.Stdout), &p); err != nil {
		return p, fmt.Errorf("plan: %w\n%s", err, r)
	}
	return p, nil
}

// StartLoad starts a load on the cluster: clients of its API, and a Deployment on every member.
func (o *Operator) StartLoad(ctx context.Context) (*load.Load, error) {
	if err := o.ImportAgnhost(ctx, o.Members()); err != nil {
		return nil, err
	}
	kubeconfig, err := o.fetchKubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	options := load.Options{Kubeconfig: kubeconfig, Image: AgnhostImage}
	for _, host := range o.Members() {
		options.Nodes = append(options.Nodes, host.Address)
	}
	return load.Start(ctx, options)
}

// Runs returns nil when the whole cluster runs a Kubernetes version. Every member is a Ready, schedulable node with
// that kubelet. The control planes' components, kube-proxy and kubeadm on the hosts have the version, too.
func (o *Operator) Runs(ctx context.Context, version string) error {
	var names []string
	for _, host := range o.Members() {
		names = append(names, host.Hostname)
	}
	return errors.Join(o.AllReady(ctx, names...), o.checkKubelets(ctx, version), o.checkComponents(ctx, version),
		o.checkPrograms(ctx, version))
}

func (o *Operator) checkKubelets(ctx context.Context, version string) error {
	nodes, err := o.Nodes(ctx)
	problems := []error{err}
	for name, node := range nodes {
		if got := node.Status.NodeInfo.KubeletVersion; got != "v"+version {
			problems = append(problems, fmt.Errorf("kubelet of %s is %s, want v%s", name, got, version))
		}
	}
	return errors.Join(problems...)
}

// checkComponents checks the images of the control planes' static pods and of kube-proxy.
func (o *Operator) checkComponents(ctx context.Context, version string) error {
	var pods corev1.PodList
	if err := o.Object(ctx, &pods, "--namespace=kube-system", "pods", "-l", "tier=control-plane"); err != nil {
		return err
	}
	problems := []error{o.checkProxy(ctx, version)}
	found := 0
	for _, pod := range pods.Items {
		if strings.HasPrefix(pod.Name, "kube-") {
			found++
			problems = append(problems, imageHas(pod.Name, pod.Spec, version))
		}
	}
	if want := 3 * len(o.Lab.ControlPlanes()); found != want {
		problems = append(problems, fmt.Errorf("%d pods of the control plane, want %d", found, want))
	}
	return errors.Join(problems...)
}

// checkProxy checks the image of kube-proxy, unless the manifest says that there is none.
func (o *Operator) checkProxy(ctx context.Context, version string) error {
	manifest, err := os.ReadFile(o.Manifest)
	if err != nil || strings.Contains(string(manifest), "skipInstallation: true") {
		return err
	}
	var proxy appsv1.DaemonSet
	if err := o.Object(ctx, &proxy, "--namespace=kube-system", "daemonset", "kube-proxy"); err != nil {
		return err
	}
	return imageHas("kube-proxy", proxy.Spec.Template.Spec, version)
}

func imageHas(name string, pod corev1.PodSpec, version string) error {
	if image := pod.Containers[0].Image; !strings.HasSuffix(image, ":v"+version) {
		return fmt.Errorf("%s runs %s, want v%s", name, image, version)
	}
	return nil
}

// checkPrograms checks the versions of kubeadm and kubelet on the hosts.
func (o *Operator) checkPrograms(ctx context.Context, version string) error {
	said, err := OnEach(ctx, o.Members(),
		"/opt/kubeone/bin/kubeadm version -o short && /opt/kubeone/bin/kubelet --version")
	problems := []error{err}
	for name, text := range said {
		if want := "v" + version + "\nKubernetes v" + version; err == nil && text != want {
			problems = append(problems, fmt.Errorf("%s: kubeadm and kubelet say %q, want %q", name, text, want))
		}
	}
	return errors.Join(problems...)
}
