package v1beta2

// encryption finds two configurations of encryption at rest: the API server reads one.
func (f *findings) encryption(c *KubeOneCluster) {
	const flag = "encryption-provider-config"
	p := c.ControlPlaneComponents
	wanted := c.Features.EncryptionProviders
	if wanted == nil || !wanted.Enable || p == nil || p.APIServer == nil {
		return
	}
	if _, own := p.APIServer.Flags[flag]; own {
		f.errorf("controlPlaneComponents.apiServer.flags."+flag, "keep one of the two",
			"names a configuration of your own, and features.encryptionProviders makes one")
	}
}
