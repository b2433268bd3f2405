package probe

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"golang.org/x/sync/errgroup"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/cluster/certificates"
	"kubeone/internal/cluster/helm"
	"kubeone/internal/cluster/inventory"
	"kubeone/internal/cluster/live"
	"kubeone/internal/cluster/record"
	"kubeone/internal/cluster/ssa"
	"kubeone/internal/locks/leaselock"
	"kubeone/internal/model/observed"
	"kubeone/internal/text/pattern"
	"maps"
	"sigs.k8s.io/yaml"
	"slices"
	"strings"
	"sync"
	"time"
)

const system = metav1.NamespaceSystem

// reader reads the API of one cluster over one connection. It makes ten requests, one more for each namespace of
// network plugins, one for each object to compare, and another one if the object may differ. For Machines it makes one
// more, and another nine if the cluster has that kind.
type reader struct {
	kube       kubernetes.Interface
	applier    *ssa.Applier
	components []live.Component
	releases   []string // desired Helm releases; nil: none is read
	now        time.Time
	dynamic    dynamic.Interface            // nil: Machines are not read
	kept       func(map[string][]byte) bool // as CredentialFiles.Kept; nil: credentials are not compared
}

// readAll reads all facts and fails if any of them cannot be read, because objects that were not read would look as if
// they did not exist. The exceptions are components that cannot be compared and unreadable keys of our record, which
// are recorded as such.
func (r *reader) readAll(ctx context.Context) (observed.API, error) {
	var api observed.API
	if err := r.readVersion(ctx, &api); err != nil {
		return observed.API{}, err
	}
	var group errgroup.Group
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	namespaces := append([]string{system}, plugins.Namespaces()...)
	pods := make([][]observed.Pod, len(namespaces))
	reads := map[string]func() error{
		"cluster ID":           func() error { return r.clusterID(ctx, &api) },
		"nodes":                func() error { return r.readNodes(ctx, &api) },
		"certificate requests": func() error { return r.requestsPending(ctx, &api) },
		"who approves Nodes":   func() error { return r.autoApproval(ctx, &api) },
		"our record":           func() error { return r.readRecord(ctx, &api) },
		"our lease":            func() error { return r.readLease(ctx, &api) },
		"kubeadm's endpoint":   func() error { return r.readEndpoint(ctx, &api) },
	}
	if len(r.components) > 0 { // not for decisions about one host, whose callers may not list ConfigMaps
		reads["inventories of addons"] = func() error { return r.readInventories(ctx, &api) }
	}
	var released map[string]observed.Comparison
	if r.releases != nil {
		reads["Helm releases"] = func() (err error) {
			released, err = r.readReleases(ctx, &api)
			return err
		}
	}
	if r.dynamic != nil {
		reads["Machines"] = func() error { return r.readPoolObjects(ctx, &api) }
	}
	for n, namespace := range namespaces {
		reads["pods in "+namespace] = func() error { return r.readPods(ctx, namespace, &pods[n]) }
	}
	compared := r.compareComponents(ctx, &group)
	for what, read := range reads {
		group.Go(func() error {
			if err := read(); err != nil {
				cancel()
				return fmt.Errorf("read %s: %w", what, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return observed.API{}, err
	}
	api.Pods = slices.Concat(pods...)
	if len(r.components)+len(released) > 0 {
		api.Compared = map[string]observed.Comparison{}
	}
	for n, c := range r.components {
		api.Compared[c.Name] = compared[n]
	}
	maps.Copy(api.Compared, released)
	return api, nil
}

// compareComponents compares the components in the group and returns the results, which are complete when the group has
// ended.
func (r *reader) compareComponents(ctx context.Context, group *errgroup.Group) []observed.Comparison {
	compared := make([]observed.Comparison, len(r.components))
	for n, c := range r.components {
		group.Go(func() error {
			compared[n] = live.Compare(ctx, r.applier, c)
			return nil
		})
	}
	return compared
}

func (r *reader) readVersion(ctx context.Context, api *observed.API) error {
	raw, err := r.kube.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("read version: %w", err)
	}
	var said version.Info
	if err := json.Unmarshal(raw, &said); err != nil {
		return fmt.Errorf("read version: %w", err)
	}
	if said.GitVersion == "" {
		return errors.New("read version: the server is not a Kubernetes API server")
	}
	api.Version = strings.TrimPrefix(said.GitVersion, "v")
	return nil
}

// clusterID returns the UID of the namespace kube-system, which identifies the cluster because it is never recreated.
func (r *reader) clusterID(ctx context.Context, api *observed.API) error {
	namespace, err := r.kube.CoreV1().Namespaces().Get(ctx, system, metav1.GetOptions{})
	if err != nil {
		return err
	}
	api.ClusterID = string(namespace.UID)
	return nil
}

func (r *reader) readNodes(ctx context.Context, api *observed.API) error {
	list, err := r.kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, n := range list.Items {
		api.Nodes = append(api.Nodes, newNode(n))
	}
	return nil
}

func (r *reader) readPods(ctx context.Context, namespace string, into *[]observed.Pod) error {
	list, err := r.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range list.Items {
		*into = append(*into, newPod(p))
	}
	return nil
}

// servingPatience is the age after which an undecided request for a serving certificate counts as pending. A run
// approves requests within moments, and a request made at the end of a run must not make the run look failed.
const servingPatience = 20 * time.Second

// requestsPending returns the number of undecided requests of kubelets for serving certificates.
func (r *reader) requestsPending(ctx context.Context, api *observed.API) error {
	list, err := r.kube.CertificatesV1().CertificateSigningRequests().List(ctx, metav1.ListOptions{
		FieldSelector: "spec.signerName=" + certificatesv1.KubeletServingSignerName,
	})
	if err != nil {
		return err
	}
	for _, request := range list.Items {
		if request.Spec.SignerName != certificatesv1.KubeletServingSignerName || !isUndecided(request) {
			continue
		}
		api.PendingCSRs++
		if r.now.Sub(request.CreationTimestamp.Time) < servingPatience {
			continue // a live run approves it
		}
		if node, names, err := certificates.ServingNames(&request); err == nil {
			for i := range names {
				names[i] = boundText(names[i])
			}
			api.ServingRequests = append(api.ServingRequests, observed.ServingRequest{Node: node, Names: names})
		}
	}
	return nil
}

// autoApproval records whether the rule of kubeadm exists that makes every join token valid for every Node.
func (r *reader) autoApproval(ctx context.Context, api *observed.API) error {
	_, err := r.kube.RbacV1().ClusterRoleBindings().Get(ctx, certificates.AutoApprovalBinding, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	api.AutoApproval = observed.Of(err == nil)
	return nil
}

func isUndecided(request certificatesv1.CertificateSigningRequest) bool {
	for _, c := range request.Status.Conditions {
		if c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied {
			return false
		}
	}
	return true
}

func (r *reader) readRecord(ctx context.Context, api *observed.API) error {
	found, err := r.kube.CoreV1().ConfigMaps(system).Get(ctx, record.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	api.Record, api.Addons = parseRecord(found)
	return nil
}

func (r *reader) readInventories(ctx context.Context, api *observed.API) error {
	var err error
	if api.Inventories, err = inventory.List(ctx, r.kube); err != nil {
		return err
	}
	for name, held := range api.Inventories {
		if held.Problem != "" {
			held.Problem = boundText(held.Problem)
			api.Inventories[name] = held
		}
	}
	return nil
}

// readReleases reads the Helm releases and compares the objects of those that kubeone installed.
func (r *reader) readReleases(ctx context.Context, api *observed.API) (map[string]observed.Comparison, error) {
	listed, err := helm.List(ctx, r.kube, r.releases)
	if err != nil {
		return nil, err
	}
	if len(r.releases) > 0 {
		if api.APIVersions, err = helm.APIVersions(r.applier.Served()); err != nil {
			return nil, err
		}
	}
	api.HelmReleases = map[string]observed.HelmRelease{}
	compared := map[string]observed.Comparison{}
	var lock sync.Mutex // of compared
	var comparing sync.WaitGroup
	for key, release := range listed {
		release.Chart, release.Version = boundText(release.Chart), boundText(release.Version)
		release.Status, release.Problem = boundText(release.Status), boundText(release.Problem)
		api.HelmReleases[key] = release.HelmRelease
		if release.Managed && len(release.Objects) > 0 {
			namespace, _, _ := strings.Cut(key, "/")
			comparing.Go(func() {
				found := live.Compare(ctx, r.applier.As(helm.FieldManager, namespace),
					live.Component{Name: key, Applied: release.Objects})
				lock.Lock()
				defer lock.Unlock()
				compared[key] = found
			})
		}
	}
	comparing.Wait()
	return compared, nil
}

// readEndpoint reads the API endpoint from the kubeadm configuration. It ignores the configuration of another program.
func (r *reader) readEndpoint(ctx context.Context, api *observed.API) error {
	found, err := r.kube.CoreV1().ConfigMaps(system).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var said struct {
		ControlPlaneEndpoint string `json:"controlPlaneEndpoint"`
	}
	if err := yaml.Unmarshal([]byte(found.Data["ClusterConfiguration"]), &said); err == nil {
		api.Endpoint = said.ControlPlaneEndpoint
	}
	return nil
}

func (r *reader) readLease(ctx context.Context, api *observed.API) error {
	found, err := r.kube.CoordinationV1().Leases(system).Get(ctx, leaselock.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	api.Lease = newLock(found, r.now)
	return nil
}

// parseRecord parses our ConfigMap.
func parseRecord(m *corev1.ConfigMap) (*observed.Record, map[string]string) {
	read := record.Decode(m.Data)
	out := &observed.Record{
		Cluster: read.Cluster, ManifestDigest: read.ManifestDigest, Manifest: read.Manifest, RunID: read.RunID,
		Nodes: read.Nodes, FormerEndpoints: read.FormerEndpoints, Hardening: read.Hardening,
	}
	for key, why := range read.Unreadable {
		if out.Unreadable == nil {
			out.Unreadable = map[string]string{}
		}
		out.Unreadable[key] = boundText(why)
	}
	return out, read.Addons
}

// CredentialFiles are the desired files with credentials for registries and proxies. Hosts do not disclose their own
// files: they print only digests of a nonce and the file. The nonce is different in every run, so that the digests do
// not help to guess a password.
type CredentialFiles struct {
	// Content is the desired content by path.
	Content map[string]string
	// Of returns what the credentials at that path are for, and whether the caller knows their desired content. It
	// returns "" for other files.
	Of func(path string) (of string, known bool)
	// Kept reports whether the data of a Secret, or nil if there is none, are the desired credentials for Machine
	// hosts.
	Kept func(secret map[string][]byte) bool
}

// credentialDigest is what a host reports about one file.
type credentialDigest struct{ sum, mode string }

const (
	maxCredentials = 512
	onlyForRoot    = "600"
)

var saltedFile = pattern.Lazy(`^([0-9a-f]{64}) ([0-7]{3,4}) (/etc/[0-9A-Za-z._:%/-]{1,320})$`)

// credentialDigests returns what the host reports about its credential files, by path, or nil if it reports nothing.
func credentialDigests(l lines) map[string]credentialDigest {
	if !l.hasValue("salted", "yes") || l.firstValue("uid") != "0" {
		return nil
	}
	out := map[string]credentialDigest{}
	for _, text := range l["salted"] {
		if m := saltedFile().FindStringSubmatch(text); m != nil && len(out) < maxCredentials {
			out[m[3]] = credentialDigest{sum: m[1], mode: m[2]}
		}
	}
	return out
}

// compareWith returns the credentials on a host that differ from the desired ones, sorted by path. It returns nil if
// the host does not report them.
func (c *CredentialFiles) compareWith(nonce string, has map[string]credentialDigest) []observed.Credential {
	if c == nil || has == nil {
		return nil
	}
	paths := slices.Collect(maps.Keys(c.Content))
	for path := range has {
		if _, wanted := c.Content[path]; !wanted {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	var out []observed.Credential
	for _, path := range paths {
		of, known := c.Of(path)
		content, wanted := c.Content[path]
		state := credentialState(known, wanted, has[path], nonce+content)
		if of != "" && state != "" {
			out = append(out, observed.Credential{Of: of, Is: state})
		}
	}
	return out
}

// credentialState returns how one file differs from the desired one, or "" if it does not.
func credentialState(known, wanted bool, has credentialDigest, salted string) observed.CredentialState {
	sum := sha256.Sum256([]byte(salted))
	switch {
	case !known:
		return observed.CredentialLeft
	case !wanted:
		return observed.CredentialExtra
	case has.sum == "":
		return observed.CredentialMissing
	case has.sum != hex.EncodeToString(sum[:]) || has.mode != onlyForRoot:
		return observed.CredentialOther
	}
	return ""
}
