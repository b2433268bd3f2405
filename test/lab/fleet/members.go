package fleet

// Host returns the host of that name or hostname, nil when there is none.
func (l *Lab) Host(name string) *Host {
	for _, host := range l.Hosts {
		if host.Name == name || host.Hostname == name {
			return host
		}
	}
	return nil
}

// ControlPlanes are the control-plane hosts, spare ones left out.
func (l *Lab) ControlPlanes() []*Host { return used(l.byRole(ControlPlane)) }

// Workers are the worker hosts, spare ones left out.
func (l *Lab) Workers() []*Host { return used(l.byRole(Worker)) }

// Spares are the hosts that the manifest does not name.
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

func used(hosts []*Host) []*Host {
	var kept []*Host
	for _, host := range hosts {
		if !host.Spare {
			kept = append(kept, host)
		}
	}
	return kept
}
