package desired

import "testing"

func TestDNSServiceAddress(t *testing.T) {
	t.Parallel()
	for subnet, want := range map[string]string{
		"10.96.0.0/12": "10.96.0.10", "10.111.255.248/24": "10.111.255.10", "192.0.2.64/26": "192.0.2.74", "fd00::/108": "",
		"": "", "x": "",
	} {
		if got := (Network{ServiceSubnet: subnet}).DNSServiceAddress(); got != want {
			t.Errorf("%q: %q, want %q", subnet, got, want)
		}
	}
}

func TestAddonImagesNote(t *testing.T) {
	t.Parallel()
	none := Cluster{NodeLocalDNS: new(true), MetricsServer: new(false)}
	metrics, other := Cluster{MetricsServer: new(true)}, Cluster{MetricsServer: new(true)}
	other.Registry.Overwrite = "registry.example"
	if note := AddonImagesNote(none); note != "" {
		t.Errorf("without images: %s", note)
	}
	if a, b := AddonImagesNote(metrics), AddonImagesNote(other); a == "" || a == b {
		t.Errorf("%s and %s", a, b)
	}
	former, newer := none, none
	former.Network.CNI = CNI{Name: "flannel", Version: "1.0.0"}
	newer.Network.CNI = CNI{Name: "flannel", Version: "1.0.1"}
	if a, b := AddonImagesNote(former), AddonImagesNote(newer); a == "" || a == b {
		t.Errorf("of two versions of a network plugin: %s and %s", a, b)
	}
	other.ReplacedAddons = []string{MetricsServerAddon}
	if note := AddonImagesNote(other); note != "" {
		t.Errorf("of a replaced addon: %s", note)
	}
}
