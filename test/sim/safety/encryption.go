package safety

import "kubeone/test/sim/world"

// checkReadable checks that every API server, and the next one on its host, has the key of every Secret.
func (c *Checker) checkReadable() {
	r := c.World.EtcdCluster()
	if r == nil {
		return
	}
	for who, keys := range c.World.Readers() {
		for _, by := range r.Objects.Secrets {
			if !world.Knows(keys, by) {
				c.Break(Readable, "the API server of %s has the keys %v, and a Secret is stored by %s", who, keys, by)
				return
			}
		}
	}
}
