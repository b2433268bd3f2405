package safety

import "slices"

// trusted checks that every member of etcd trusts the certificates of all others.
func (c *Checker) trusted() {
	shows, trusts := c.World.Shown()
	for who, key := range shows {
		for other, keys := range trusts {
			if !slices.Contains(keys, key) {
				c.Break(Trusted, "the etcd of %s trusts %v, and that of %s shows what %s has signed", other, keys, who,
					key)
				return
			}
		}
	}
}
