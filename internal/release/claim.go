package release

import "slices"

// claimCheck compares what sources say with the known digests, and collects the parts that only their source vouches
// for.
type claimCheck struct {
	known   Digests
	trusted bool // takes every source at its word for what is not known
	doubt   UntrustedError
}

// check reports whether the digest of the claim is known; the error is a *MismatchError. Official says that the source
// needs no other to vouch for it.
func (c *claimCheck) check(claim Claim, official bool) (known bool, err error) {
	known, err = c.known.Check(claim)
	if err != nil || known || official || c.trusted {
		return known, err
	}
	c.doubt.Parts = append(c.doubt.Parts, claim.What)
	if !slices.Contains(c.doubt.Sources, claim.Source) {
		c.doubt.Sources = append(c.doubt.Sources, claim.Source)
	}
	return false, nil
}

// doubts is an *UntrustedError for the parts that only their source vouches for, or nil if there are none.
func (c *claimCheck) doubts() error {
	if len(c.doubt.Parts) == 0 {
		return nil
	}
	return &c.doubt
}

// believes reports whether the source's claim may be kept for later runs.
func (s Source) believes(claim Claim, official bool) bool {
	known, err := s.Known.Check(claim)
	return err == nil && (known || official || s.Trusted)
}
