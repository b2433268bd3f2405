package world

import (
	"slices"

	"kubeone/internal/model/desired"
	"kubeone/internal/plan/step"
)

// Where the API is looked for. An API server is believed by who dials one of the names in its certificate; behind an
// endpoint may be any of them.

// Order is what a run works for, as its scripts say it: the endpoint, with the names that it wants in certificates, and
// how often the cluster has been recovered when its plan has run; and for whom.
type Order struct {
	Endpoint  desired.Endpoint
	Epoch     int
	Machine   string // the UID of the Machine that it is about; empty: the manifest's hosts
	Encrypted bool   // Secrets are to be encrypted from the beginning
	Config    string // the digest of the configuration that hosts are to have; empty: that of the beginning

	Owed map[string]map[step.Kind]desired.Activity // by host, what has hooks to follow
}

// Ordered notes what a run works for.
func (w *World) Ordered(run string, o Order) {
	if w.orders == nil {
		w.orders = map[string]Order{}
	}
	w.orders[run] = o
}

// wantedBy is the endpoint that the run works for.
func (w *World) wantedBy(run string) desired.Endpoint {
	if o, ok := w.orders[run]; ok {
		return o.Endpoint
	}
	return w.want.Endpoint
}

// Believed reports whether every API server that there is has the name; of hosts that the manifest does not have, those
// that serve.
func (w *World) Believed(name string) bool {
	for _, h := range w.Hosts {
		gone := h.Outside && !w.APIReady(h)
		if h.ControlPlane && h.Disk.API != "" && h.Disk.Joined() && !gone && !slices.Contains(h.Disk.Names, name) {
			return false
		}
	}
	return true
}

// ForgottenEndpoint reports whether workers dial an endpoint that no control-plane host knows any more: by the word of
// workers alone no name gets into a certificate.
func (w *World) ForgottenEndpoint() bool {
	dialled := slices.ContainsFunc(w.Hosts, func(h *Host) bool { return h.Disk.Dials != "" })
	known := slices.ContainsFunc(w.Hosts, func(h *Host) bool { return h.Disk.Admin != "" && h.Disk.Joined() })
	return dialled && !known
}

func certify(w *World, h *Host, u *Unit) (bool, error) {
	p := step.ParamsOf[step.APINamesParams](u.Intent)
	w.effect(Effect{Verb: Wrote, By: u.By, Host: h})
	names := slices.DeleteFunc(slices.Clone(h.Disk.Names), func(n string) bool { return slices.Contains(p.Drop, n) })
	h.Disk.Names = append(names, desired.Missing(p.Add, names)...)
	return true, nil
}

// redial has the host's kubeconfigs dial the endpoint, once an API server has answered there.
func redial(w *World, h *Host, u *Unit) (bool, error) {
	e := w.wantedBy(u.By.Run).At(step.ParamsOf[step.DialParams](u.Intent).Endpoint)
	answers := slices.ContainsFunc(w.Hosts, func(other *Host) bool {
		return other.ControlPlane && h.Linked(other) && w.APIReady(other) && slices.Contains(other.Disk.Names, e.Host)
	})
	if h.Split || !answers {
		return false, nil
	}
	w.effect(Effect{Verb: Wrote, By: u.By, Host: h})
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
	w.effect(Effect{Verb: Applied, By: q.by})
	q.etcdCluster.Objects.Endpoint = desired.Endpoint{}.At(p.Endpoint).Host
	q.etcdCluster.Objects.Former = slices.Clone(p.Former)
	return w.Write(), nil
}

// url is how a kubeconfig has the endpoint of a name; "" where there is none.
func url(name string) string {
	if name == "" {
		return ""
	}
	return desired.Endpoint{Host: name, Port: port}.URL()
}

const port = 6443
