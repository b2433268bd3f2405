package skew

import "testing"

func TestContainerd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kubelet, containerd, want string }{
		{kubelet: "1.36.3", containerd: "2.4.2"},
		{kubelet: "1.36.3", containerd: "2.0.0"},
		{kubelet: "1.34.0", containerd: "2.0.5"},
		{kubelet: "1.37.2", containerd: "2.4.2"},
		{kubelet: "1.37.2", containerd: "1.7.28", want: "kubelet 1.37.2 does not work with containerd 1.7.28"},
		{kubelet: "1.36.3", containerd: "1.7.22", want: "kubelet 1.36.3 does not work with containerd 1.7.22"},
		{kubelet: "1.36.3", containerd: "3.0.0", want: "kubelet 1.36.3 does not work with containerd 3.0.0"},
		{kubelet: "1.33.9", containerd: "2.4.2", want: "kubelet 1.33.9 does not work with containerd 2.4.2"},
		{kubelet: "1.36.3", containerd: "2.4", want: `containerd's version "2.4": illegal version string "2.4"`},
		{kubelet: "", containerd: "2.4.2", want: `kubelet's version "": could not parse "" as version`},
	} {
		got := ""
		if err := Containerd(tt.kubelet, tt.containerd); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("kubelet %s, containerd %s: %q, want %q", tt.kubelet, tt.containerd, got, tt.want)
		}
	}
}

func TestSupportedContainerdIsNotSaidOfAnUnknownKubelet(t *testing.T) {
	t.Parallel()
	for kubelet, want := range map[string]string{
		"1.36.3": "2.0 and newer, before 3, with kubelet 1.36.3",
		"1.20.0": "",
		"x":      "",
	} {
		if got := SupportedContainerd(kubelet); got != want {
			t.Errorf("%s: %q, want %q", kubelet, got, want)
		}
	}
}
