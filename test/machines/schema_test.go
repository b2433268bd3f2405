//go:build e2e

// Package machines tests objects of the Machine API against a real kube-apiserver and etcd, both from the lab.
package machines

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"kubeone/api/cluster/v1alpha1"
	"kubeone/test/lab/apiserver"
)

// server is an API server with the kinds.
type server struct {
	client.Client
	config *rest.Config
}

// startServerWithKinds starts an API server and creates the CustomResourceDefinitions.
func startServerWithKinds(t *testing.T) *server {
	t.Helper()
	config := apiserver.Start(t.Context(), t, "1.36.3")
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{
		Paths: []string{"../../api/cluster/v1alpha1/crds"}, ErrorIfPathMissing: true, MaxTime: within,
	}); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &server{Client: c, config: config}
}

func TestMachineAPIObjects(t *testing.T) {
	t.Parallel()
	s := startServerWithKinds(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, *server)
	}{
		{"the definitions are accepted without complaint", checkDefinitions},
		{"manifests of machine-controller are accepted as they are", checkAccepted},
		{"what is left out has its default", checkDefaults},
		{"what cannot be is refused", checkRefused},
		{"what cannot be changed is refused", checkImmutable},
		{"applying the same file again writes nothing", writesNothing},
		{"status is written beside the spec, and read by the scale subresource", checkScale},
		{"machines are found by provider and by Node", checkSelectors},
		{"what is older than a rule is kept, and written", olderThanARule},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, s) })
	}
}

func checkDefinitions(t *testing.T, s *server) {
	var list apiextensionsv1.CustomResourceDefinitionList
	if err := s.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) != 4 {
		t.Errorf("%d definitions, want 4", len(list.Items))
	}
	for _, crd := range list.Items {
		for _, condition := range crd.Status.Conditions {
			bad := map[apiextensionsv1.CustomResourceDefinitionConditionType]bool{
				apiextensionsv1.NonStructuralSchema: true, apiextensionsv1.Terminating: true,
			}
			if bad[condition.Type] && condition.Status == apiextensionsv1.ConditionTrue ||
				condition.Type == apiextensionsv1.Established && condition.Status != apiextensionsv1.ConditionTrue {
				t.Errorf("%s: %s is %s: %s", crd.Name, condition.Type, condition.Status, condition.Message)
			}
		}
	}
}

// checkAccepted creates objects of other programs, with field validation as strict as kubectl's.
func checkAccepted(t *testing.T, s *server) {
	files, err := filepath.Glob("testdata/machine-controller/*.yaml")
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		written := parseObject(t, string(text))
		got := written.DeepCopy()
		if err := s.Create(t.Context(), got, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		at := []string{"spec", "template", "spec", "providerSpec"}
		want, _, _ := unstructured.NestedMap(written.Object, at...)
		kept, _, _ := unstructured.NestedMap(got.Object, at...)
		if diff := cmp.Diff(want, kept); diff != "" {
			t.Errorf("%s: the provider's part is not kept (-written +kept):\n%s", file, diff)
		}
	}
}

const (
	template = `{metadata: {labels: {pool: a}}, spec: {providerSpec: {value: {cloudProvider: ssh}}, ` +
		`versions: {kubelet: 1.36.3}}}`
	deployment = "apiVersion: cluster.k8s.io/v1alpha1\nkind: MachineDeployment\n" +
		"metadata: {name: NAME, namespace: default}\n" +
		"spec:\n  selector: {matchLabels: {pool: a}}\n  template: " + template + "\n"
	set = "apiVersion: cluster.k8s.io/v1alpha1\nkind: MachineSet\n" +
		"metadata: {name: NAME, namespace: default}\n" +
		"spec:\n  selector: {matchLabels: {pool: a}}\n  template: " + template + "\n"
	alone = "apiVersion: cluster.k8s.io/v1alpha1\nkind: Machine\nmetadata: {name: NAME, namespace: default}\n" +
		"spec:\n  providerSpec: {value: {cloudProvider: ssh}}\n  versions: {kubelet: 1.36.3}\n"
)

// nameManifest returns a manifest with a name, and with more lines in its spec.
func nameManifest(manifest, name string, more ...string) string {
	text := strings.Replace(manifest, "NAME", name, 1)
	for _, line := range more {
		text += "  " + line + "\n"
	}
	return text
}

func parseObject(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	asJSON, err := yaml.YAMLToJSONStrict([]byte(text))
	if err == nil {
		err = u.UnmarshalJSON(asJSON)
	}
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return u
}

func (s *server) createStrictly(ctx context.Context, u *unstructured.Unstructured) error {
	return s.Create(ctx, u, client.FieldValidation("Strict"))
}

func checkDefaults(t *testing.T, s *server) {
	for _, c := range []struct {
		manifest string
		want     map[string]any
	}{
		{nameManifest(deployment, "defaults"), map[string]any{
			"replicas": int64(1), "minReadySeconds": int64(0), "revisionHistoryLimit": int64(1),
			"progressDeadlineSeconds": int64(600), "strategy": map[string]any{
				"type":          "RollingUpdate",
				"rollingUpdate": map[string]any{"maxSurge": int64(1), "maxUnavailable": int64(0)},
			},
		}},
		{nameManifest(deployment, "defaults-health", "healthCheck: {}"), map[string]any{
			"healthCheck": map[string]any{
				"nodeStartupTimeoutSeconds": int64(1200), "notReadyTimeoutSeconds": int64(300), "maxUnhealthy": "40%",
			},
		}},
		{nameManifest(set, "defaults"), map[string]any{
			"replicas": int64(1), "minReadySeconds": int64(0), "deletePolicy": "Random",
		}},
	} {
		u := parseObject(t, c.manifest)
		if err := s.createStrictly(t.Context(), u); err != nil {
			t.Error(err)
			continue
		}
		spec, _, _ := unstructured.NestedMap(u.Object, "spec")
		for field, want := range c.want {
			if diff := cmp.Diff(want, spec[field]); diff != "" {
				t.Errorf("%s of a %s (-want +got):\n%s", field, u.GetKind(), diff)
			}
		}
	}
}

func checkRefused(t *testing.T, s *server) {
	for i, c := range []struct{ manifest, says string }{
		{nameManifest(deployment, "NAME", "replicas: -1"), "spec.replicas"},
		{nameManifest(deployment, "NAME", "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}"),
			"must not both be 0"},
		{nameManifest(deployment, "NAME", "strategy: {rollingUpdate: {maxSurge: 0%, maxUnavailable: 0}}"),
			"must not both be 0"},
		{nameManifest(deployment, "NAME", "strategy: {rollingUpdate: {maxSurge: 120%}}"), "a percentage such as 25%"},
		{nameManifest(deployment, "NAME", "strategy: {rollingUpdate: {maxSurge: -1}}"), "a percentage such as 25%"},
		{nameManifest(deployment, "NAME", "strategy: {type: Recreate}"), `"RollingUpdate", "OnDelete"`},
		{nameManifest(deployment, "NAME", "progressDeadlineSeconds: 0"), "progressDeadlineSeconds"},
		{nameManifest(deployment, "NAME", "healthCheck: {maxUnhealthy: many}"), "a percentage such as 40%"},
		{nameManifest(deployment, "NAME", "replica: 3"), `unknown field "spec.replica"`},
		{nameManifest(set, "NAME", "deletePolicy: Youngest"), "deletePolicy"},
		{nameManifest(alone, "NAME", "roles: [Admin]"), "spec.roles"},
		{nameManifest(alone, "NAME", "roles: [Master]"), "only a Machine of the provider static"},
		{strings.Replace(nameManifest(alone, "NAME"), "versions: {kubelet: 1.36.3}", "versions: {}", 1),
			"kubelet is required"},
		{strings.Replace(deployment, "cloudProvider: ssh", "cloudProvider: static", 1), "cannot have a template"},
		{nameManifest(alone, "NAME", "providerID: ''"), "spec.providerID"},
		{nameManifest(alone, "NAME", "taints: [{key: a}]"), "effect"},
		{nameManifest(alone, "NAME", "taints: [{key: a, effect: Never}]"), "taints[0].effect"},
		{nameManifest(alone, "NAME", "taints: [{key: 'a b', effect: NoSchedule}]"), "taints[0].key"},
		{nameManifest(alone, "NAME", "taints: [{key: a, value: b c, effect: NoSchedule}]"), "taints[0].value"},
		{nameManifest(alone, "NAME", "taints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]"),
			"Duplicate"},
		{nameManifest(alone, "NAME", "taints: [{key: node.kubernetes.io/not-ready, effect: NoExecute}]"),
			"a Machine cannot set"},
		{nameManifest(alone, "NAME", "metadata: {labels: {node-role.kubernetes.io/control-plane: ''}}"),
			"a Machine cannot set"},
		{nameManifest(alone, "NAME", "metadata: {labels: {kubernetes.io/hostname: cp-1}}"), "a Machine cannot set"},
		{nameManifest(alone, "NAME", "metadata: {labels: {machine-controller/owned-by: a}}"), "a Machine cannot set"},
		{nameManifest(alone, "NAME", "metadata: {annotations: {kubeone.k8c.io/cordoned-by: a}}"),
			"a Machine cannot set"},
		{nameManifest(alone, "NAME", "metadata: {labels: {a b: ''}}"), "a label's key is"},
		{nameManifest(alone, "NAME", "metadata: {labels: {a: b c}}"), "spec.metadata.labels.a"},
		{nameManifest(alone, "NAME", "metadata: {labels: {"+manyLabels(65)+"}}"), "at most 64"},
		{nameManifest(alone, "NAME", "metadata: {annotations: {a/b/c: ''}}"), "an annotation's key is"},
		{nameManifest(alone, "NAME", "metadata: {annotations: {a: "+strings.Repeat("b", 4097)+"}}"), "Too long"},
		{nodeLabel(deployment, "node-role.kubernetes.io/worker"), "a Machine cannot set"},
		{nodeLabel(set, "node-role.kubernetes.io/worker"), "a Machine cannot set"},
		{strings.Replace(deployment, "{pool: a}}, spec", "{pool: a, b c: d}}, spec", 1), "a label's key is"},
		{strings.Replace(nameManifest(alone, "NAME"), "1.36.3", "latest", 1), "spec.versions.kubelet"},
		{strings.Replace(nameManifest(alone, "NAME"), "1.36.3", "1.36", 1), "spec.versions.kubelet"},
		{strings.Replace(nameManifest(alone, "NAME"), "cloudProvider: ssh", "a: b", 1), "cloudProvider: Required"},
		{strings.Replace(nameManifest(alone, "NAME"), "kubelet:", "containerRuntime: {version: 2.1.4}, kubelet:", 1),
			"containerRuntime.name: Required"},
	} {
		u := parseObject(t, strings.Replace(c.manifest, "NAME", fmt.Sprint("refused-", i), 1))
		err := s.createStrictly(t.Context(), u)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want an error that says %q, of:\n%s", err, c.says, c.manifest)
		}
	}
}

// manyLabels returns count labels.
func manyLabels(count int) string {
	var out []string
	for i := range count {
		out = append(out, fmt.Sprintf("a%d: ''", i))
	}
	return strings.Join(out, ", ")
}

// nodeLabel returns a manifest whose Machines label their Nodes.
func nodeLabel(manifest, key string) string {
	return strings.Replace(manifest, "spec: {providerSpec", "spec: {metadata: {labels: {"+key+": ''}}, providerSpec", 1)
}

// olderThanARule has a Machine with a label that was valid before. The controllers must be able to report it in the
// Machine's status.
func olderThanARule(t *testing.T, s *server) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	rules := func(set []apiextensionsv1.ValidationRule) (had []apiextensionsv1.ValidationRule) {
		t.Helper()
		if err := s.Get(t.Context(), client.ObjectKey{Name: "machines.cluster.k8s.io"}, crd); err != nil {
			t.Fatal(err)
		}
		properties := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties
		spec := properties["spec"]
		had, spec.XValidations = spec.XValidations, set
		properties["spec"] = spec
		if err := s.Update(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		return had
	}
	until := func(what string, done func(context.Context) (bool, error)) {
		t.Helper()
		if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, done); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	const role = "node-role.kubernetes.io/worker"
	older := nameManifest(alone, "older", "metadata: {labels: {"+role+": ''}}")
	had := rules(nil)
	until("without the rule it is made", func(ctx context.Context) (bool, error) {
		err := s.createStrictly(ctx, parseObject(t, older))
		return err == nil, ignoreInvalid(err)
	})
	rules(had)
	until("the rule is there again", func(ctx context.Context) (bool, error) {
		err := s.createStrictly(ctx, parseObject(t, strings.Replace(older, "older", "newer", 1)))
		if err == nil {
			err = s.Delete(ctx, parseObject(t, strings.Replace(older, "older", "newer", 1)))
			return false, err
		}
		return apierrors.IsInvalid(err), ignoreInvalid(err)
	})
	m := &v1alpha1.Machine{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "older"}, m); err != nil {
		t.Fatal(err)
	}
	reason := v1alpha1.InvalidConfiguration
	m.Status.ErrorReason = &reason
	if err := s.Status().Update(t.Context(), m); err != nil {
		t.Errorf("its status: %v", err)
	}
	m.Finalizers = []string{v1alpha1.MachineFinalizer}
	m.Spec.Versions.Kubelet = "1.35.4"
	if err := s.Update(t.Context(), m); err == nil || !apierrors.IsInvalid(err) {
		t.Errorf("another spec with that label: %v", err)
	}
	m = &v1alpha1.Machine{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "older"}, m); err != nil {
		t.Fatal(err)
	}
	before := m.DeepCopy()
	m.Finalizers = []string{v1alpha1.MachineFinalizer}
	if err := s.Patch(t.Context(), m, client.MergeFrom(before)); err != nil {
		t.Errorf("its finalizer: %v", err)
	}
	m.Finalizers, m.Spec.ObjectMeta.Labels = nil, nil
	if err := s.Update(t.Context(), m); err != nil {
		t.Errorf("its correction: %v", err)
	}
}

func ignoreInvalid(err error) error {
	if apierrors.IsInvalid(err) {
		return nil
	}
	return err
}

func checkImmutable(t *testing.T, s *server) {
	const selector, provider = "spec.selector.matchLabels.pool", "spec.providerSpec.value.cloudProvider"
	for _, c := range []struct {
		manifest, path string
		value          any
		says           string
	}{
		{deployment, selector, "b", "selector is immutable"},
		{set, selector, "b", "selector is immutable"},
		{deployment, "spec.template." + provider, "fake", ""},
		{alone, provider, "fake", "cloudProvider is immutable"},
		{nameManifest(alone, "NAME", "providerID: a"), "spec.providerID", "b", "providerID is immutable"},
		{alone, "spec.providerID", "b", ""},
		{alone, "spec.versions.kubelet", "1.35.4", ""},
		{alone, "spec.versions.containerRuntime", map[string]any{"name": "containerd", "version": "2.3.7"}, ""},
	} {
		u := parseObject(t, nameManifest(c.manifest, "unchangeable"))
		if err := s.createStrictly(t.Context(), u); err != nil {
			t.Fatal(err)
		}
		changed := u.DeepCopy()
		if err := unstructured.SetNestedField(changed.Object, c.value, strings.Split(c.path, ".")...); err != nil {
			t.Fatal(err)
		}
		err := s.Update(t.Context(), changed)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s to %v: %v, want %q", c.path, c.value, err, c.says)
		}
		if err := s.Delete(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
}

func writesNothing(t *testing.T, s *server) {
	for _, manifest := range []string{deployment, set, alone} {
		version := ""
		for range 2 {
			u := parseObject(t, nameManifest(manifest, "again"))
			if err := s.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(u),
				client.FieldOwner("kubectl"), client.ForceOwnership); err != nil {
				t.Fatal(err)
			}
			if err := s.Get(t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
				t.Fatal(err)
			}
			if version != "" && version != u.GetResourceVersion() {
				t.Errorf("a %s that is applied again is written again", u.GetKind())
			}
			version = u.GetResourceVersion()
		}
	}
}

func checkScale(t *testing.T, s *server) {
	md := &v1alpha1.MachineDeployment{}
	if err := yaml.UnmarshalStrict([]byte(nameManifest(deployment, "scaled")), md); err != nil {
		t.Fatal(err)
	}
	md.Status.Replicas = 7
	if err := s.Create(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	if md.Status.Replicas != 0 {
		t.Error("the creator of an object can write its status")
	}
	md.Status.Replicas, md.Status.LabelSelector = 1, "pool=a"
	md.Spec.Paused = true
	if err := s.Status().Update(t.Context(), md); err != nil {
		t.Fatal(err)
	}
	if md.Spec.Paused || md.Generation != 1 {
		t.Errorf("a write of the status has changed the spec: generation %d", md.Generation)
	}
	scale := &unstructured.Unstructured{}
	if err := s.SubResource("scale").Get(t.Context(), md, scale); err != nil {
		t.Fatal(err)
	}
	selector, _, _ := unstructured.NestedString(scale.Object, "status", "selector")
	replicas, _, _ := unstructured.NestedInt64(scale.Object, "status", "replicas")
	if selector != "pool=a" || replicas != 1 {
		t.Errorf("scale says selector %q and %d replicas", selector, replicas)
	}
}

func checkSelectors(t *testing.T, s *server) {
	u := parseObject(t, nameManifest(alone, "selected"))
	if err := s.createStrictly(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	m := &v1alpha1.Machine{}
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(u), m); err != nil {
		t.Fatal(err)
	}
	m.Status.Phase = v1alpha1.Running
	if err := s.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	var found v1alpha1.MachineList
	if err := s.List(t.Context(), &found, client.InNamespace("default"),
		client.MatchingFields{"spec.providerSpec.value.cloudProvider": "ssh"}); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(found.Items, func(m v1alpha1.Machine) bool { return m.Name == "selected" }) {
		t.Errorf("%d machines of the provider, without the one", len(found.Items))
	}
	m.Status.Phase = "Confused"
	if err := s.Status().Update(t.Context(), m); !apierrors.IsInvalid(err) {
		t.Errorf("a phase that there is not: %v", err)
	}
}
