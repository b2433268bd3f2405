package probe

// life is how often the cluster had been recovered when the host joined it; of a host that has not finished joining,
// the present one.
func (c candidate) life(newest int) int {
	if m := c.answer.Host.Marker; m != nil && m.Complete {
		return m.Epoch
	}
	return newest
}

// newestLife is the highest count of recoveries that a control-plane host has whose key is approved. Hosts of a lower
// one hold the data of the cluster's life before, whatever they answer: nothing of the cluster is asked through them.
func (p *prober) newestLife() int {
	newest := 0
	for _, t := range p.Targets {
		if a := p.answers[t.ID]; t.ControlPlane && a.Host.FirstContact == "" {
			newest = max(newest, candidate{t, a}.life(0))
		}
	}
	return newest
}

// staleEpoch reports whether the host with that ID holds the data of the cluster's life before.
func (p *prober) staleEpoch(id string) bool {
	newest := p.newestLife()
	for _, t := range p.Targets {
		if t.ID == id {
			return candidate{t, p.answers[id]}.life(newest) < newest
		}
	}
	return false
}

// ofNewestLife is a stream of the candidates through which to ask again what one of a former life has answered.
func (p *prober) ofNewestLife(has func(Credentials) bool) <-chan candidate {
	all := p.candidates("")
	again := make(chan candidate, len(all))
	for _, c := range all {
		if has(c.answer.Credentials) {
			again <- c
		}
	}
	close(again)
	return again
}
