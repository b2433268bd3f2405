package hostile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"time"
)

// objectsOfItsOwn returns attempts with API objects that a kubelet may write: its Node, its static pods, and its
// certificate requests.
func objectsOfItsOwn() []attempt {
	says := func(name string, change func(objects)) attempt {
		return attempt{name: name, as: asWorker, objects: change}
	}
	return []attempt{
		says("its Node has the addresses of all others", func(o objects) {
			o.findNode("w-2")["status"].(object)["addresses"] = list{
				object{"type": "InternalIP", "address": "10.0.0.11"},
				object{"type": "InternalIP", "address": "10.0.0.23"},
				object{"type": "InternalIP", "address": "10.0.0.21"}, object{"type": "Hostname", "address": "cp-1"},
			}
		}),
		says("its Node has no address and no version, and is not Ready", func(o objects) {
			o.findNode("w-2")["status"] = object{}
		}),
		says("its Node is cordoned by a run of ours, with escapes", func(o objects) {
			o.findNode("w-2")["spec"] = object{"unschedulable": true}
			o.findNode("w-2")["metadata"].(object)["annotations"] = object{"kubeone.k8c.io/cordoned-by": escape}
		}),
		says("its Node's annotations, addresses and versions are escapes", func(o objects) {
			n := o.findNode("w-2")
			n["metadata"].(object)["annotations"] = object{"x": escape, "kubeone.k8c.io/cordoned-by": escape}
			n["status"].(object)["addresses"] = list{object{"type": "Hostname", "address": escape}}
			n["status"].(object)["nodeInfo"] = object{"kubeletVersion": escape, "containerRuntimeVersion": escape}
		}),
		says("static pods of its own that are called kube-proxy and cluster DNS", func(o objects) {
			o.addPods(mirrorPod("kube-proxy-x", object{"k8s-app": "kube-proxy"}),
				mirrorPod("coredns-x", object{"k8s-app": "kube-dns"}))
		}),
		says("static pods of its own that are called etcd and API server", func(o objects) {
			o.addPods(mirrorPod("etcd-cp-1", object{"component": "etcd"}),
				mirrorPod("kube-apiserver-cp-1", object{"component": "kube-apiserver"}))
		}),
		says("a request for a serving certificate with the API's names", func(o objects) {
			o.setRequests(servingRequest("w-2", "w-2", endpointHost, "10.96.0.1", "10.0.0.11"))
		}),
		says("a request for a serving certificate in a control-plane host's name", func(o objects) {
			o.setRequests(servingRequest("w-2", "cp-1", "10.0.0.11"))
		}),
		says("requests for certificates that are none, with escapes", func(o objects) {
			o.setRequests(object{
				"metadata": object{"name": escape},
				"spec": object{
					"signerName": "kubernetes.io/kubelet-serving", "username": escape, "request": "AAAA",
				},
			})
		}),
	}
}

// findNode returns the Node with that name.
func (o objects) findNode(name string) object {
	for _, n := range o["/api/v1/nodes"].(object)["items"].(list) {
		if n.(object)["metadata"].(object)["name"] == name {
			return n.(object)
		}
	}
	return nil
}

// addPods adds pods to those of the cluster.
func (o objects) addPods(more ...any) {
	of := o[systemPath+"/pods"].(object)
	of["items"] = append(of["items"].(list), more...)
}

func (o objects) setRequests(all ...any) {
	o["/apis/certificates.k8s.io/v1/certificatesigningrequests"].(object)["items"] = all
}

// mirrorPod returns the mirror pod of a static pod of the attacker.
func mirrorPod(name string, labels object) object {
	return object{
		"metadata": object{
			"name": name, "namespace": "kube-system", "labels": labels,
			"annotations": object{"kubernetes.io/config.mirror": "x", "kubernetes.io/config.source": "file"},
			"ownerReferences": list{
				object{"apiVersion": "v1", "kind": "Node", "name": "w-2", "uid": "x", "controller": true},
			},
		},
		"spec":   object{"nodeName": "w-2", "containers": list{object{"name": "x", "image": "evil.example.com/x:1"}}},
		"status": object{"conditions": list{object{"type": "Ready", "status": "True"}}},
	}
}

// servingRequest returns a request of a Node's kubelet for a serving certificate, made a minute ago.
func servingRequest(by, name string, names ...string) object {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // no random numbers
	}
	template := &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		panic(err) // invalid template
	}
	return object{
		"metadata": object{
			"name": "csr-1", "creationTimestamp": time.Now().Add(-time.Minute).UTC().Format(time.RFC3339),
		},
		"spec": object{
			"signerName": "kubernetes.io/kubelet-serving", "username": "system:node:" + by,
			"groups":  list{"system:nodes", "system:authenticated"},
			"usages":  list{"digital signature", "server auth"},
			"request": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		},
	}
}

// versionAttempts returns attempts with impossible kubelet versions, during joins of other hosts and during an upgrade
// of the whole cluster.
func versionAttempts() []attempt {
	kubelet := func(version string) func(*trial) []string {
		return addLines("-link\tlrwxrwxrwx 1 root root 38 Jan  2 10:00 kubelet",
			"link\tl 1 root root 38 Jan 2 10:00 kubelet -> /opt/kubeone/kubelet/"+version+"/kubelet")
	}
	reports := func(version string) func(objects) {
		return func(o objects) {
			o.findNode("w-2")["status"].(object)["nodeInfo"] = object{"kubeletVersion": version}
		}
	}
	return []attempt{
		{name: "a kubelet of the future, by the host", as: asWorker, says: kubelet("99.99.99")},
		{name: "a kubelet of the past, by the host", as: asWorker, says: kubelet("1.0.1")},
		{name: "a kubelet whose version is a command", as: asWorker, says: kubelet("$(reboot)")},
		{name: "a kubelet of the future, by its Node", as: asWorker, objects: reports("v99.99.99")},
		{name: "a kubelet of the past, by its Node", as: asWorker, objects: reports("v1.0.1")},
		{name: "a kubelet of no version, by both", as: asWorker, says: kubelet("$(reboot)"), objects: reports("")},
		{name: "a kubelet of the future, during an upgrade", as: asWorker, waits: true, runs: "1.36.1",
			says: kubelet("99.99.99")},
		{name: "the same by its Node", as: asWorker, waits: true, runs: "1.36.1",
			objects: reports("v99.99.99")},
		{name: "a kubelet of no version by both, during an upgrade", as: asWorker, waits: true, runs: "1.36.1",
			says: kubelet("$(reboot)"), objects: reports("")},
		{name: "a kubelet of the past, during an upgrade", as: asWorker, waits: true, runs: "1.36.1",
			says: kubelet("1.0.1"), objects: reports("v1.0.1")},
		{name: "nothing at all, during an upgrade", as: asWorker, waits: true, runs: "1.36.1",
			answers: printText(func(*trial) string { return "" })},
		{name: "another cluster's marker, during an upgrade", as: asWorker, waits: true, runs: "1.36.1",
			says: addLines(markerLines("cluster=prod", "role=worker", "complete=yes")...)},
	}
}
