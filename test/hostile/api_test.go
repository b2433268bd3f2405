package hostile

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"kubeone/internal/addons"
	"kubeone/internal/addons/chart"
	"kubeone/internal/addons/network/plugins"
	"kubeone/internal/addons/system"
	kube "kubeone/internal/cluster"
	"kubeone/internal/model/desired"
	"kubeone/internal/release"
)

// token is the administrator's token.
const token = "TOKEN-OF-THE-ADMINISTRATOR"

// objects are the objects of an API server, by path.
type objects map[string]any

type (
	object = map[string]any
	list   = []any
)

// api is a fake API server that serves objects and changes none.
type api struct {
	*httptest.Server

	mu    sync.Mutex
	asked int
}

func newAPI(t *testing.T, have objects) *api {
	t.Helper()
	a := &api{}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.asked++
		a.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		found, ok := have[r.URL.Path]
		switch {
		case r.Header.Get("Authorization") != "Bearer "+token:
			w.WriteHeader(http.StatusUnauthorized)
		case !ok || r.Method != http.MethodGet:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(object{
				"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
			})
		default:
			_ = json.NewEncoder(w).Encode(found)
		}
	}))
	a.TLS = &tls.Config{Certificates: []tls.Certificate{selfSigned()}, MinVersion: tls.VersionTLS12}
	a.EnableHTTP2 = true
	a.StartTLS()
	t.Cleanup(a.Close)
	return a
}

func (a *api) requestCount() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// kubeAccess returns access to the API without a host, as the controllers have it.
func (a *api) kubeAccess() kube.Access {
	return kube.Access{
		Kubeconfig: []byte(a.adminKubeconfig()), Via: []kube.Endpoint{{ID: "api", Address: a.Listener.Addr().String()}},
	}
}

// caCertificate returns the certificate of the cluster's CA, which is also the server's certificate.
func (a *api) caCertificate() []byte { return pemOf(a.Certificate().Raw) }

// adminKubeconfig returns the administrator's kubeconfig.
func (a *api) adminKubeconfig() string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%s:6443", certificate-authority-data: %s}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`, endpointHost, base64.StdEncoding.EncodeToString(a.caCertificate()), token)
}

// selfSigned returns a certificate for the API's addresses that is its own CA.
func selfSigned() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // no random numbers
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "kubernetes"},
		IPAddresses: []net.IP{net.ParseIP("127.0.0.1"), net.ParseIP(endpointHost)}, IsCA: true,
		BasicConstraintsValid: true,
		NotBefore:             time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		panic(err) // invalid template
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

const systemPath = "/api/v1/namespaces/kube-system"

// objectsOf returns the objects of a cluster that matches the manifest.
func (c *cluster) objectsOf(t *testing.T) objects {
	t.Helper()
	var nodes, pods, plugin list
	images := system.Images(namesOf(t, c.want))
	for _, m := range append(clusterMachines(), machinesOutsideManifest()...) {
		if m.bare {
			continue
		}
		nodes = append(nodes, c.nodeOf(m))
		plugin = append(plugin, newPod("net-"+m.name, m.name, object{"app": c.want.Network.CNI.Name}, "example.com/net:1"))
		apps := []string{system.KubeProxy}
		if m.name == "cp-1" {
			apps = append(apps, system.DNS)
		}
		for _, app := range apps {
			pods = append(pods, newPod(app+"-"+m.name, m.name, object{"k8s-app": app}, images[app]))
		}
	}
	sums, err := json.Marshal(addonsOf(t, c.want))
	if err != nil {
		t.Fatal(err)
	}
	out := objects{
		"/apis/cluster.k8s.io/v1alpha1/machines": object{
			"kind": "MachineList", "apiVersion": "cluster.k8s.io/v1alpha1", "items": list{},
		},
		"/apis/kubeone.k8c.io/v1alpha1/hosts": object{
			"kind": "HostList", "apiVersion": "kubeone.k8c.io/v1alpha1", "items": list{
				object{"metadata": object{"name": "pool-2"}, "spec": object{"address": "10.0.1.9"}},
			},
		},
		"/version": object{"gitVersion": "v" + c.runs},
		"/readyz":  "ok",
		systemPath: object{
			"kind": "Namespace", "apiVersion": "v1", "metadata": object{"name": "kube-system", "uid": "u-1"},
		},
		"/api/v1/nodes":      object{"kind": "NodeList", "apiVersion": "v1", "items": nodes},
		systemPath + "/pods": object{"kind": "PodList", "apiVersion": "v1", "items": pods},
		"/apis/certificates.k8s.io/v1/certificatesigningrequests": object{
			"kind": "CertificateSigningRequestList", "apiVersion": "certificates.k8s.io/v1", "items": list{},
		},
		systemPath + "/configmaps": object{"kind": "ConfigMapList", "apiVersion": "v1", "items": list{}},
		"/api/v1/secrets":          object{"kind": "SecretList", "apiVersion": "v1", "items": list{}}, // of Helm releases
		systemPath + "/configmaps/kubeadm-config": object{"kind": "ConfigMap", "apiVersion": "v1", "data": object{
			"ClusterConfiguration": "controlPlaneEndpoint: " + endpointHost + ":6443\n",
		}},
		systemPath + "/configmaps/kubeone": object{
			"kind": "ConfigMap", "apiVersion": "v1", "metadata": object{"name": "kubeone"},
			"data": object{"cluster": "demo", "manifestDigest": c.want.Digest, "addons": string(sums)},
		},
	}
	for _, namespace := range plugins.Namespaces() {
		out["/api/v1/namespaces/"+namespace+"/pods"] = object{"kind": "PodList", "apiVersion": "v1", "items": plugin}
	}
	return out
}

// The Machine whose Node is pool-1.
const (
	machineUID  = "6a5f2d5e-0000-4000-8000-000000000001"
	machineName = "kube-system/pool-abcde"
)

// nodeOf returns the Node of a healthy machine.
func (c *cluster) nodeOf(m machine) object {
	labels, spec := object{"kubernetes.io/hostname": m.name}, object{}
	if m.controlPlane {
		labels["node-role.kubernetes.io/control-plane"] = ""
		spec["taints"] = list{object{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}}
	}
	if m.name == "pool-1" {
		labels[desired.OwnerLabel] = machineUID
	}
	return object{
		"metadata": object{"name": m.name, "labels": labels},
		"spec":     spec,
		"status": object{
			"conditions": list{object{"type": "Ready", "status": "True"}},
			"addresses":  list{object{"type": "InternalIP", "address": m.address}},
			"nodeInfo":   object{"kubeletVersion": "v" + c.runs, "containerRuntimeVersion": "containerd://2.4.2"},
		},
	}
}

// newPod returns a ready pod.
func newPod(name, node string, labels object, image string) object {
	return object{
		"metadata": object{"name": name, "labels": labels},
		"spec":     object{"nodeName": node, "containers": list{object{"name": "x", "image": image}}},
		"status":   object{"conditions": list{object{"type": "Ready", "status": "True"}}},
	}
}

// namesOf returns the artifact names of the desired release.
func namesOf(t *testing.T, want desired.Cluster) desired.Artifacts {
	t.Helper()
	names, err := release.Names(release.Want{
		KubernetesVersion: want.KubernetesVersion, Arch: "amd64", CNI: want.Network.CNI.Name, KubeProxy: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// addonsOf returns the digests of the manifest's addons.
func addonsOf(t *testing.T, want desired.Cluster) map[string]string {
	t.Helper()
	names := namesOf(t, want)
	want.Artifacts = map[string]desired.Artifacts{names.Arch: names}
	all, err := addons.Render(want)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, a := range all {
		out[a.Name] = a.Digest
	}
	return out
}

// shelf has the names of every release, because these tests install nothing.
type shelf struct{}

func (shelf) Names(w release.Want) (desired.Artifacts, error) { return release.Names(w) }

func (shelf) Resolve(_ context.Context, w release.Want) (desired.Artifacts, error) {
	return release.Names(w)
}

func (shelf) Chart(context.Context, chart.Source) ([]byte, error) {
	return nil, errors.New("nothing is installed")
}

func (shelf) WorkloadImages() string { return "" }

func (shelf) Verify(context.Context) error { return nil }

func (shelf) Blob(string) (io.Reader, int64, error) { return nil, 0, errors.New("nothing is uploaded") }
