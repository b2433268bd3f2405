package fleet

// Host returns the host with that name or hostname, or nil.
func (l *Lab) Host(name string) *Host {
	for _, host := range l.Hosts {
		if host.Name == name || host.Hostname == name {
			return host
		}
	}
	return nil
}

// ControlPlanes returns the control-plane hosts, without spare ones.
func (l *Lab) ControlPlanes() []*Host { return withoutSpares(l.byRole(ControlPlane)) }

// Workers returns the worker hosts, without spare ones.
func (l *Lab) Workers() []*Host { return withoutSpares(l.byRole(Worker)) }

// Spares returns the hosts outside the manifest.
func (l *Lab) Spares() []*Host {
	var spares []*Host
	for _, host := range l.Hosts {
		if host.Spare {
			spares = append(spares, host)
		}
	}
	return spares
}

func (l *Lab) byRole(role Role) []*Host {
	var hosts []*Host
	for _, host := range l.Hosts {
		if host.Role == role {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func withoutSpares(hosts []*Host) []*Host {
	var kept []*Host
	for _, host := range hosts {
		if !host.Spare {
			kept = append(kept, host)
		}
	}
	return kept
}
