package world

import (
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
)

// Where clients look for the API. A client trusts an API server whose certificate has the dialled name. Any API server
// may be behind an endpoint.

// Order is the goal of a run as its scripts contain it: the endpoint and the other names in certificates, the number of
// recoveries after its plan, and the owner.
type Order struct {
	Endpoint  desired.Endpoint
	Epoch     int
	Machine   string // UID of the run's Machine; empty for the manifest's hosts
	Encrypted bool   // Secrets are encrypted from the start
	Config    string // digest of the desired configuration; empty for the initial one

	Owed map[string]map[step.Kind]desired.Activity // hosts' activities with hooks afterwards
}

// Ordered records the goal of a run.
func (w *World) Ordered(run string, o Order) {
	if w.orders == nil {
		w.orders = map[string]Order{}
	}
	w.orders[run] = o
}

// wantedBy returns the endpoint of the run.
func (w *World) wantedBy(run string) desired.Endpoint {
	if o, ok := w.orders[run]; ok {
		return o.Endpoint
	}
	return w.want.Endpoint
}

// Believed reports whether every existing API server has the name. Of hosts outside the manifest, it counts those that
// serve.
func (w *World) Believed(name string) bool {
	for _, h := range w.Hosts {
		gone := h.Outside && !w.APIReady(h)
		if h.ControlPlane && h.Disk.API != "" && h.Disk.Joined() && !gone && !slices.Contains(h.Disk.Names, name) {
			return false
		}
	}
	return true
}

// ForgottenEndpoint reports whether workers dial an endpoint that no control-plane host knows. The word of workers
// alone puts no name into a certificate.
func (w *World) ForgottenEndpoint() bool {
	dialled := slices.ContainsFunc(w.Hosts, func(h *Host) bool { return h.Disk.Dials != "" })
	known := slices.ContainsFunc(w.Hosts, func(h *Host) bool { return h.Disk.Admin != "" && h.Disk.Joined() })
	return dialled && !known
}

func certifyNames(w *World, h *Host, u *Unit) (bool, error) {
	p := step.ParamsOf[step.APINamesParams](u.Intent)
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	names := slices.DeleteFunc(slices.Clone(h.Disk.Names), func(n string) bool { return slices.Contains(p.Drop, n) })
	h.Disk.Names = append(names, desired.Missing(p.Add, names)...)
	return true, nil
}

// redialEndpoint makes the host's kubeconfigs dial the endpoint, once an API server has answered there.
func redialEndpoint(w *World, h *Host, u *Unit) (bool, error) {
	e := w.wantedBy(u.By.Run).At(step.ParamsOf[step.DialParams](u.Intent).Endpoint)
	answers := slices.ContainsFunc(w.Hosts, func(other *Host) bool {
		return other.ControlPlane && h.Linked(other) && w.APIReady(other) && slices.Contains(other.Disk.Names, e.Host)
	})
	if h.Split || !answers {
		return false, nil
	}
	w.reportEffect(Effect{Verb: Wrote, By: u.By, Host: h})
	if h.ControlPlane {
		h.Disk.Admin = e.Host
	}
	if !h.Disk.Local {
		h.Disk.Dials = e.Host
	}
	return true, nil
}

func publishEndpoint(w *World, q query) (bool, error) {
	p := step.ParamsOf[step.PublishEndpointParams](q.in)
	w.reportEffect(Effect{Verb: Applied, By: q.by})
	q.etcdCluster.Objects.Endpoint = desired.Endpoint{}.At(p.Endpoint).Host
	q.etcdCluster.Objects.Former = slices.Clone(p.Former)
	return w.Write(), nil
}

// endpointURL returns a kubeconfig's URL for the name of an endpoint, or "".
func endpointURL(name string) string {
	if name == "" {
		return ""
	}
	return desired.Endpoint{Host: name, Port: port}.URL()
}

const port = 6443
