package sshpool

import (
	"maps"
	"sync"
)

// HostStats counts operations on one host since its pool was created.
type HostStats struct {
	Dials       int // attempts to open a connection
	Connections int // successful attempts
	Commands    int // remote commands, uploads included
	Uploads     int
	Tunnels     int // connections dialled from the host, bastion hops included
}

// Stats counts a Pool's operations. Bastions count as hosts.
type Stats struct {
	HostStats                      // the sum
	Hosts     map[string]HostStats // by host name
}

// counter is a Stats that is safe for concurrent use.
type counter struct {
	mu    sync.Mutex
	stats Stats
}

func (c *counter) addStats(host string, f func(*HostStats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stats.Hosts == nil {
		c.stats.Hosts = map[string]HostStats{}
	}
	h := c.stats.Hosts[host]
	f(&h)
	c.stats.Hosts[host] = h
	f(&c.stats.HostStats)
}

func (c *counter) snapshot() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Hosts = maps.Clone(s.Hosts)
	return s
}
