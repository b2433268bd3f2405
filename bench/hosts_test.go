package main

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/probe"
)

func TestProbeNeedsOneCommandPerHost(t *testing.T) {
	t.Parallel()
	const hosts = 12
	stdin, stop := io.Pipe()
	printed, stdout := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := serveHosts(t.Context(), []string{t.TempDir(), fmt.Sprint(hosts)}, stdin, stdout)
		_ = stdout.CloseWithError(fmt.Errorf("the hosts ended: %w", err))
		served <- err
	}()
	var manifest string
	if _, err := fmt.Fscanln(printed, &manifest); err != nil {
		t.Fatal(err)
	}
	got, err := lookAt(t.Context(), manifest, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if got.Probe < roundTrip.Seconds() {
		t.Errorf("probing took %v s, less than a round trip", got.Probe)
	}
	got.Load, got.Probe, got.Think = 0, 0, 0
	if diff := cmp.Diff(look{Reached: hosts, Route: got.Route, Connections: 1, Commands: 1}, got); diff != "" {
		t.Errorf("look (-want +got):\n%s", diff)
	}
	_ = stop.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func TestCannedAnswersAreHealthy(t *testing.T) {
	t.Parallel()
	certificate, err := selfSigned()
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []desired.Role{desired.ControlPlane, desired.Worker} {
		want := desired.Cluster{Name: "fleet", KubernetesVersion: simulatedVersion}
		want.Network.CNI.Name = "flannel"
		parts, err := partsOf(want)
		if err != nil {
			t.Fatal(err)
		}
		host := desired.Host{
			ID: "10.0.0.1", PublicAddress: "10.0.0.1", PrivateAddress: "10.0.0.1", Hostname: "one", Role: role,
		}
		var out bytes.Buffer
		if err := (canned{renderFacts(want, host, parts, certificate)}).writeAnswer(&out); err != nil {
			t.Fatal(err)
		}
		a, err := probe.Parse(out.Bytes(), time.Now(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		switch h := a.Host; {
		case h.Reach != observed.Reached, h.Marker == nil || !h.Marker.Complete, h.Kubelet.Version != simulatedVersion,
			h.Hostname != "one":
			t.Errorf("%s: %+v", role, h)
		case role == desired.ControlPlane && h.APIServer != observed.Yes:
			t.Errorf("its API server is %v", h.APIServer)
		}
	}
}
