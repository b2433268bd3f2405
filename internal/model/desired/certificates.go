package desired

import "time"

// kubeadmValidity is how long a certificate is valid that kubeadm makes, where nobody says otherwise.
const kubeadmValidity = 365 * 24 * time.Hour

// Validity is how long a certificate is valid that is made now.
func (c Certificates) Validity() time.Duration {
	if d, err := time.ParseDuration(c.ValidityPeriod); err == nil && d > 0 {
		return d
	}
	return kubeadmValidity
}
