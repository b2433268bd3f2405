package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// fetchKubeconfig copies the administrator's kubeconfig from the first control-plane host that has one, and returns its
// path.
func (o *Operator) fetchKubeconfig(ctx context.Context) (string, error) {
	path := filepath.Join(o.Dir, "admin.conf")
	for _, host := range o.Lab.ControlPlanes() {
		text, err := host.Exec(ctx, "cat /etc/kubernetes/admin.conf")
		if err == nil {
			return path, os.WriteFile(path, []byte(text+"\n"), 0o600)
		}
	}
	return "", fmt.Errorf("lab %s: no control-plane host has an admin.conf", o.Lab.Name)
}

// Client returns the administrator's client of an API server's URL; an empty URL means the load balancer. A request may
// take two seconds.
func (o *Operator) Client(server string) (kubernetes.Interface, error) {
	config, err := clientcmd.BuildConfigFromFlags(server, filepath.Join(o.Dir, "admin.conf"))
	if err != nil {
		return nil, err
	}
	config.Timeout, config.QPS = 2*time.Second, -1 // no client-side rate limit
	return kubernetes.NewForConfig(config)
}

// FetchKubeconfig makes Kube work with the current cluster. Call it after each installation.
func (o *Operator) FetchKubeconfig(ctx context.Context) error {
	_, err := o.fetchKubeconfig(ctx)
	return err
}

// Kube runs kubectl through the load balancer and returns its output.
func (o *Operator) Kube(ctx context.Context, args ...string) (string, error) {
	return o.runKubectlRetrying(ctx, "", args)
}

// Feed runs kubectl with text on its standard input.
func (o *Operator) Feed(ctx context.Context, input string, args ...string) (string, error) {
	return o.runKubectlRetrying(ctx, input, args)
}

// attempts is the number of attempts when a connection is cut.
const attempts = 5

// runKubectlRetrying repeats a command whose connection was cut, as an operator would. On a busy machine, the load
// balancer drops an API server and its connections when two of its checks take longer than a second each. The effect of
// an earlier attempt counts: if a later attempt finds the object deleted, or created, it succeeds.
func (o *Operator) runKubectlRetrying(ctx context.Context, input string, args []string) (string, error) {
	out, err := o.runKubectl(ctx, input, args)
	for n := 1; n < attempts && cutOff(err) && waitFor(ctx, time.Second); n++ {
		if out, err = o.runKubectl(ctx, input, args); doneBefore(args, err) {
			err = nil
		}
	}
	return out, err
}

// waitFor waits for d. It returns false when ctx ends before.
func waitFor(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// cutOff reports whether kubectl lost its connection, or the API server its connection to etcd, during a request. A
// refused connection does not count: scenarios have clusters without an API.
func cutOff(err error) bool {
	return err != nil && slices.ContainsFunc([]string{
		"unexpected EOF", ": EOF", "connection reset by peer", "client connection lost", "TLS handshake timeout",
		"Client.Timeout exceeded", "i/o timeout",
		"etcdserver: leader changed", "etcdserver: request timed out",
	}, func(text string) bool { return strings.Contains(err.Error(), text) })
}

// doneBefore reports whether the error of a repeated command shows that an earlier attempt succeeded.
func doneBefore(args []string, err error) bool {
	return err != nil &&
		(slices.Contains(args, "delete") && strings.Contains(err.Error(), "(NotFound)") ||
			slices.Contains(args, "create") && strings.Contains(err.Error(), "(AlreadyExists)"))
}

// runKubectl runs a command once.
func (o *Operator) runKubectl(ctx context.Context, input string, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, o.Kubectl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(o.Dir, "admin.conf"),
		"KUBECACHEDIR="+filepath.Join(o.Dir, "kubecache"))
	cmd.Stdin = strings.NewReader(input)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(),
			fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Object reads an object, or a list of them, into a value.
func (o *Operator) Object(ctx context.Context, into any, args ...string) error {
	text, err := o.Kube(ctx, append([]string{"get", "-o", "json", "--request-timeout=20s"}, args...)...)
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(text), into)
}

// Nodes returns the cluster's nodes by name.
func (o *Operator) Nodes(ctx context.Context) (map[string]corev1.Node, error) {
	var list corev1.NodeList
	if err := o.Object(ctx, &list, "nodes"); err != nil {
		return nil, err
	}
	nodes := map[string]corev1.Node{}
	for _, node := range list.Items {
		nodes[node.Name] = node
	}
	return nodes, nil
}

// Ready reports whether the node is Ready and schedulable.
func Ready(node corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue && !node.Spec.Unschedulable
		}
	}
	return false
}

// AllReady returns nil when exactly these hosts are nodes of the cluster, all of them Ready.
func (o *Operator) AllReady(ctx context.Context, hostnames ...string) error {
	nodes, err := o.Nodes(ctx)
	if err != nil {
		return err
	}
	if len(nodes) != len(hostnames) {
		return fmt.Errorf("%d nodes, want %s", len(nodes), strings.Join(hostnames, ", "))
	}
	for _, name := range hostnames {
		if node, ok := nodes[name]; !ok || !Ready(node) {
			return fmt.Errorf("node %s: known %v, Ready %v", name, ok, Ready(node))
		}
	}
	return nil
}
