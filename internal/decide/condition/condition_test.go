package condition

import (
	"testing"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/model/problem"
	"kubeone/internal/testutil/decidetest"

	"github.com/google/go-cmp/cmp"
)

// inCluster returns the context of a healthy cluster around the host.
func inCluster(h desired.Host) HostContext {
	n := decidetest.ReadyNode(h)
	s := HostContext{
		Cluster: decidetest.Cluster, CA: decidetest.CA, Version: decidetest.Version, API: observed.Yes, Node: &n,
		Etcd: observed.Yes,
	}
	if h.Role == desired.ControlPlane {
		m := decidetest.Voter(h)
		s.Member = &m
	}
	return s
}

func TestConditionOfControlPlaneHost(t *testing.T) {
	t.Parallel()
	type host = observed.Host
	tests := []struct {
		name   string
		host   func(*host)
		around func(*HostContext)
		want   Condition
		reason string // the first
	}{
		{"healthy", nil, nil, Healthy, ""},
		{"not asked", func(h *host) { *h = host{} }, nil, Unreachable, "HostNotAsked"},
		{"unreachable", func(h *host) { *h = host{Reach: observed.Unreachable, Problem: "timed out"} }, nil,
			Unreachable, "HostUnreachable(error=timed out)"},
		{"denied without a reason", func(h *host) { *h = host{Reach: observed.Denied} }, nil, Unreachable,
			"HostLoginRefused(error=does not answer (denied))"},
		{"one fact unknown", func(h *host) { h.PKI = observed.Unknown }, nil, Unclear, "HostUnclear(items=PKI)"},
		{"marker of another cluster", func(h *host) { h.Marker.Cluster = "beta" }, nil, Foreign,
			"ForeignCluster(cluster=beta, wanted=alpha)"},
		{"other CA", func(h *host) { h.CAHash = decidetest.OtherCA }, nil, Foreign,
			"ForeignCA(ca=sha256:bbbb, cluster=alpha, items=kubelet.conf+admin.conf+PKI+etcd data+static pods, " +
				"wanted=sha256:aaaa)"},
		{"no marker, our CA", func(h *host) { h.Marker = nil }, nil, Healthy, ""},
		{"no marker, no CA known", func(h *host) { h.Marker = nil }, func(s *HostContext) { s.CA = "" }, Foreign,
			"ForeignData(items=kubelet.conf+admin.conf+PKI+etcd data+static pods)"},
		{"no marker, our CA, never joined", func(h *host) { h.Marker, h.KubeletConf = nil, observed.No }, nil, Partial,
			"NeverJoined(items=admin.conf+PKI+etcd data+static pods)"},
		{"unfinished", func(h *host) { h.Marker.Complete = false }, nil, Partial,
			"InstallationIncomplete(items=kubelet.conf+admin.conf+PKI+etcd data+static pods)"},
		{"still a learner", nil, func(s *HostContext) { s.Member.Learner = true }, Partial, "JoinIncomplete"},
		{"kubelet.conf gone", func(h *host) { h.KubeletConf = observed.No }, nil, Regenerable, "KubeletConfMissing"},
		{"kubelet.conf and PKI gone", func(h *host) { h.KubeletConf, h.PKI = observed.No, observed.No }, nil, Broken,
			"KubeletConfMissing"},
		{"kubelet.conf gone, kubelet stopped", func(h *host) { h.KubeletConf, h.Kubelet.Active = observed.No, false },
			nil, Regenerable, "KubeletConfMissing"},
		{"a manifest gone", func(h *host) { h.Manifests, h.APIServer = h.Manifests[:1], observed.Unknown }, nil,
			Regenerable, "StaticPodMissing(pod=kube-apiserver)"},
		{"a manifest gone, and its pod runs still", func(h *host) { h.Manifests = h.Manifests[:3] }, nil, Healthy, ""},
		{"a manifest gone in the middle of an upgrade", func(h *host) {
			h.Manifests, h.APIServer, h.Kubelet.Version = h.Manifests[:1], observed.Unknown, "1.35.4"
		}, nil, Unready, "ComponentUnknown(component=API server)"},
		{"its upgrade has started, but no API server answers", func(h *host) {
			h.APIServer, h.Upgrading = observed.No, decidetest.Version
		}, func(s *HostContext) { s.API, s.Node = observed.No, nil }, Regenerable, "UpgradeStuck(version=1.36.3)"},
		{"its upgrade has begun, and another API server answers", func(h *host) {
			h.APIServer, h.Upgrading = observed.No, decidetest.Version
		}, nil, Broken, "ComponentUnhealthy(component=API server)"},
		{"its upgrade to another version has started, but no API server answers", func(h *host) {
			h.APIServer, h.Upgrading = observed.No, "1.36.2"
		}, func(s *HostContext) { s.API, s.Node = observed.No, nil }, Broken,
			"ComponentUnhealthy(component=API server)"},
		{"its upgrade has begun, and its kubelet does not run", func(h *host) {
			h.APIServer, h.Upgrading, h.Kubelet.Active = observed.No, decidetest.Version, false
		}, func(s *HostContext) { s.API, s.Node = observed.No, nil }, Regenerable, "SettingsStuck"},
		{"its upgrade has begun, and neither kubelet nor container runtime runs", func(h *host) {
			h.Upgrading, h.Kubelet.Active, h.Containerd.Active = decidetest.Version, false, false
		}, nil, Restartable, "ContainerdStopped(state=active/running)"},
		{"certificates expired", func(h *host) {
			h.Certificates = []observed.Certificate{
				{Name: "apiserver", Expired: true},
				{Name: "etcd/peer"},
				{Name: "admin.conf", Expired: true},
			}
		}, nil, Regenerable, "CertificatesExpired(certificates=apiserver+admin.conf)"},
		{"the CA expired", func(h *host) {
			h.Certificates, h.APIServer = []observed.Certificate{
				{Name: "apiserver", Expired: true},
				{Name: "ca", Expired: true},
			}, observed.No
		}, nil, Broken, "CAExpired(certificates=ca)"},
		{"the kubelet's certificate expired", func(h *host) {
			h.Certificates, h.Kubelet.Active = []observed.Certificate{{Name: "kubelet-client", Expired: true}}, false
		}, nil, Regenerable, "KubeletCertificateExpired"},
		{"the certificate in kubelet.conf expired", func(h *host) {
			h.Certificates, h.Kubelet.Active = []observed.Certificate{{Name: "kubelet.conf", Expired: true}}, false
		}, nil, Regenerable, "KubeletCertificateExpired"},
		{"the kubelet's certificate gone", func(h *host) { h.KubeletCert = observed.No }, nil, Regenerable,
			"KubeletCertificateMissing"},
		{"the kubelet's serving certificate expired", func(h *host) {
			h.Certificates = []observed.Certificate{{Name: "kubelet-server", Expired: true}}
		}, nil, Healthy, ""},
		{"PKI gone", func(h *host) { h.PKI = observed.No }, nil, Broken, "CAKeyMissing"},
		{"etcd data gone below a living member", func(h *host) { h.EtcdData = observed.No }, nil, Broken,
			"EtcdDataMissing"},
		{"etcd data gone, and the others still hear it",
			func(h *host) { h.EtcdData, h.EtcdHealth = observed.No, observed.No }, nil, Broken, "EtcdDataMissing"},
		{"etcd data gone", func(h *host) { h.EtcdData, h.EtcdHealth = observed.No, observed.No },
			func(s *HostContext) { s.Member.Healthy = observed.No }, Rejoinable, "EtcdDataMissing"},
		{"etcd data gone, the member removed already",
			func(h *host) { h.EtcdData, h.EtcdHealth = observed.No, observed.No },
			func(s *HostContext) { s.Member = nil }, Rejoinable, "EtcdDataMissing"},
		{"etcd data gone, members not known", func(h *host) { h.EtcdData, h.EtcdHealth = observed.No, observed.No },
			func(s *HostContext) { s.Etcd, s.Member = observed.Unknown, nil }, Broken, "EtcdDataMissing"},
		{"etcd data that etcd cannot use", func(h *host) { h.EtcdLost, h.EtcdHealth = "crc mismatch", observed.No },
			func(s *HostContext) { s.Member.Healthy = observed.No }, Rejoinable,
			"EtcdDataUnusable(error=crc mismatch)"},
		{"an old complaint of an etcd that is well", func(h *host) { h.EtcdLost = "crc mismatch" }, nil, Healthy, ""},
		{"an old complaint of an etcd that is well, and that the others do not hear yet",
			func(h *host) { h.EtcdLost = "crc mismatch" },
			func(s *HostContext) { s.Member.Healthy = observed.No }, Broken, "EtcdMemberDown"},
		{"an old complaint of an etcd that is well, and that the others do not list",
			func(h *host) { h.EtcdLost = "crc mismatch" }, func(s *HostContext) { s.Member = nil }, Broken,
			"EtcdMemberMissing"},
		{"containerd stopped", func(h *host) { h.Containerd.Active, h.Containerd.State = false, "failed/failed" }, nil,
			Restartable, "ContainerdStopped(state=failed/failed)"},
		{"kubelet stopped", func(h *host) { h.Kubelet.Active, h.Kubelet.State = false, "inactive/dead" }, nil,
			Restartable, "KubeletStopped(state=inactive/dead)"},
		{"kubelet not installed", func(h *host) { h.Kubelet = observed.Unit{State: "inactive/dead"} }, nil, Restartable,
			"KubeletStopped(state=not installed)"},
		{"systemd says nothing", func(h *host) { h.Kubelet, h.Containerd = observed.Unit{}, observed.Unit{} }, nil,
			Unready, "ComponentUnknown(component=containerd)"},
		{"kubelet hangs", func(h *host) { h.Healthz = observed.No }, nil, Restartable, "KubeletUnhealthy"},
		{"stopped units explain a failing API server",
			func(h *host) { h.Kubelet.Active, h.APIServer = false, observed.No }, nil, Restartable,
			"KubeletStopped(state=active/running)"},
		{"API server fails", func(h *host) { h.APIServer = observed.No }, nil, Broken,
			"ComponentUnhealthy(component=API server)"},
		{"etcd fails", func(h *host) { h.EtcdHealth = observed.No }, nil, Broken, "ComponentUnhealthy(component=etcd)"},
		{"controller manager fails", func(h *host) { h.ControllerManager = observed.No }, nil, Broken,
			"ComponentUnhealthy(component=controller manager)"},
		{"scheduler not known", func(h *host) { h.Scheduler = observed.Unknown }, nil, Unready,
			"ComponentUnknown(component=scheduler)"},
		{"kubelet's health not known", func(h *host) { h.Healthz = observed.Unknown }, nil, Unready,
			"ComponentUnknown(component=kubelet)"},
		{"no Node", nil, func(s *HostContext) { s.Node = nil }, Broken, "NodeMissing"},
		{"no member of etcd", nil, func(s *HostContext) { s.Member = nil }, Broken, "EtcdMemberMissing"},
		{"etcd member dead", nil, func(s *HostContext) { s.Member.Healthy = observed.No }, Broken, "EtcdMemberDown"},
		{"etcd member not known", nil, func(s *HostContext) { s.Member.Healthy = observed.Unknown }, Unready,
			"EtcdMemberUnknown"},
		{"alarm", nil, func(s *HostContext) { s.Member.Alarms = []string{"NOSPACE"} }, Unready,
			"EtcdAlarm(alarms=NOSPACE)"},
		{"Node not Ready", nil, func(s *HostContext) { s.Node.Ready = observed.No }, Unready, "NodeNotReady"},
		{"Node silent", nil, func(s *HostContext) { s.Node.Ready = observed.Unknown }, Unready, "NodeStatusUnknown"},
		{"Node not Ready without network plugin", nil,
			func(s *HostContext) { s.Node.Ready, s.NoCNI = observed.No, true }, Healthy, "NetworkPluginPending"},
		{"API silent", nil, func(s *HostContext) { s.API, s.Node = observed.Unknown, nil }, Unready, "NodeUnknown"},
		{"API down", nil, func(s *HostContext) { s.API, s.Node = observed.No, nil }, Unready, "NodeUnknown"},
		{"member list not known", nil, func(s *HostContext) { s.Etcd, s.Member = observed.Unknown, nil }, Healthy, ""},
		{"static pods left behind", func(h *host) {
			*h = decidetest.Bare(desired.Host{})
			h.Manifests = []string{"kube-apiserver.yaml"}
		}, nil, Foreign, "ForeignData(items=static pods)"},
		{"a CA certificate left behind", func(h *host) {
			*h = decidetest.Bare(desired.Host{})
			h.CAHash = decidetest.OtherCA
		}, func(s *HostContext) { s.CA = "" }, Foreign, "ForeignData(items=a CA certificate)"},
		{"wiped", func(h *host) {
			m := h.Marker
			*h = decidetest.Bare(desired.Host{})
			h.Marker = m
		}, nil, Broken, "MemberDataMissing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := decidetest.Host(desired.ControlPlane, "cp", 1)
			is, around := decidetest.Member(w), inCluster(w)
			if tt.host != nil {
				tt.host(&is)
			}
			if tt.around != nil {
				tt.around(&around)
			}
			a := Classify(&w, &is, around)
			reason := ""
			if len(a.Reasons) > 0 {
				reason = a.Reasons[0].String()
			}
			if a.Condition != tt.want || reason != tt.reason {
				t.Errorf("got %s (%s), want %s (%s)", a.Condition, reason, tt.want, tt.reason)
			}
		})
	}
}

func TestConditionOfWorker(t *testing.T) {
	t.Parallel()
	w := decidetest.Host(desired.Worker, "w", 1)
	tests := []struct {
		name string
		host func(*observed.Host)
		node bool
		want Assessment
	}{
		{"healthy without control-plane components", func(*observed.Host) {}, true,
			Assessment{Condition: Healthy, Member: observed.Yes, Node: "w-1"}},
		{
			"containerd stopped", func(h *observed.Host) { h.Containerd.Active, h.Kubelet.Active = false, false }, true,
			Assessment{
				Condition: Restartable, Member: observed.Yes, Node: "w-1", Units: []string{"containerd", "kubelet"},
				Reasons: []problem.Problem{
					{Code: problem.ContainerdStopped, Parameters: problem.Parameters{"state": "active/running"}},
					{Code: problem.KubeletStopped, Parameters: problem.Parameters{"state": "active/running"}},
				},
			},
		},
		{
			"it alone says that it is a control-plane host", func(h *observed.Host) { h.EtcdData = observed.Yes }, true,
			Assessment{
				Condition: Unclear, Member: observed.Yes, Node: "w-1",
				Reasons: []problem.Problem{{Code: problem.ControlPlaneClaimed}},
			},
		},
		{
			"its Node was deleted", func(*observed.Host) {}, false,
			Assessment{
				Condition: Broken,
				Member:    observed.Yes,
				Node:      "w-1",
				Reasons:   []problem.Problem{{Code: problem.NodeMissing}},
			},
		},
		{
			"kubelet.conf gone", func(h *observed.Host) { h.KubeletConf = observed.No }, true,
			Assessment{
				Condition: Regenerable, Member: observed.Yes, Node: "w-1", Parts: []string{PartKubelet},
				Reasons: []problem.Problem{{Code: problem.KubeletConfMissing}},
			},
		},
		{
			"all of /etc/kubernetes gone", func(h *observed.Host) { h.KubeletConf, h.CAHash = observed.No, "" }, true,
			Assessment{
				Condition: Regenerable, Member: observed.Yes, Node: "w-1", Parts: []string{PartKubelet},
				Reasons: []problem.Problem{{Code: problem.KubeletConfMissing}},
			},
		},
		{
			"empty", func(h *observed.Host) { *h = decidetest.Bare(w) }, false,
			Assessment{
				Condition: Empty,
				Member:    observed.No,
				Node:      "w-1",
				Reasons:   []problem.Problem{{Code: problem.HostEmpty}},
			},
		},
		{
			"empty in the place of a Node", func(h *observed.Host) { *h = decidetest.Bare(w) }, true,
			Assessment{
				Condition: Empty, Member: observed.No, Node: "w-1", Replaced: true,
				Reasons: []problem.Problem{{Code: problem.HostEmpty}},
			},
		},
		{
			"our installation began", func(h *observed.Host) {
				*h = decidetest.Bare(w)
				h.Marker = &observed.Marker{Cluster: decidetest.Cluster}
			}, false,
			Assessment{
				Condition: Empty, Member: observed.No, Node: "w-1", Resume: true,
				Reasons: []problem.Problem{{Code: problem.InstallationBegun}},
			},
		},
		{
			"our installation has not finished", func(h *observed.Host) { *h = decidetest.Begun(w) }, false,
			Assessment{
				Condition: Partial, Member: observed.No, Node: "w-1", Resume: true,
				Reasons: []problem.Problem{
					{Code: problem.InstallationIncomplete,
						Parameters: problem.Parameters{"items": []string{"kubelet.conf"}}},
				},
			},
		},
		{
			"unreachable, with a Node", func(h *observed.Host) { *h = decidetest.Silent(w) }, true,
			Assessment{
				Condition: Unreachable,
				Member:    observed.Yes,
				Node:      "w-1",
				Reasons: []problem.Problem{
					{Code: problem.HostUnreachable, Parameters: problem.Parameters{"error": "connection timed out"}},
				},
			},
		},
		{
			"unreachable, without a Node", func(h *observed.Host) { *h = decidetest.Silent(w) }, false,
			Assessment{
				Condition: Unreachable,
				Member:    observed.No,
				Node:      "w-1",
				Reasons: []problem.Problem{
					{Code: problem.HostUnreachable, Parameters: problem.Parameters{"error": "connection timed out"}},
				},
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			is, around := decidetest.Member(w), inCluster(w)
			tt.host(&is)
			if !tt.node {
				around.Node = nil
			}
			for i := range tt.want.Reasons {
				tt.want.Reasons[i].Host = w.ID
			}
			if diff := cmp.Diff(tt.want, Classify(&w, &is, around)); diff != "" {
				t.Errorf("assessment (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMembershipOfSilentHostIsUnknownUnlessAPIAndEtcdWereAsked(t *testing.T) {
	t.Parallel()
	w := decidetest.Host(desired.ControlPlane, "cp", 1)
	is := decidetest.Silent(w)
	for _, tt := range []struct{ api, etcd, want observed.Tri }{
		{observed.Yes, observed.Yes, observed.No},
		{observed.Yes, observed.Unknown, observed.Unknown},
		{observed.Unknown, observed.Yes, observed.Unknown},
		{observed.No, observed.Unknown, observed.Unknown},
	} {
		if got := Classify(&w, &is, HostContext{
			Cluster: decidetest.Cluster,
			API:     tt.api,
			Etcd:    tt.etcd,
		}).Member; got != tt.want {
			t.Errorf("API %q, etcd %q: member %q, want %q", tt.api, tt.etcd, got, tt.want)
		}
	}
}
