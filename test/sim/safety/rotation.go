package safety

import "slices"

// checkTrusted checks that every member of etcd trusts the certificates of all others.
func (c *Checker) checkTrusted() {
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
