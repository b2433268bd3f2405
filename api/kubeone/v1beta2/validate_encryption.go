package v1beta2

// encryption refuses two configurations of encryption at rest, because the API server reads only one.
func (f *findings) encryption(c *KubeOneCluster) {
	const flag = "encryption-provider-config"
	p := c.ControlPlaneComponents
	wanted := c.Features.EncryptionProviders
	if wanted == nil || !wanted.Enable || p == nil || p.APIServer == nil {
		return
	}
	if _, own := p.APIServer.Flags[flag]; own {
		f.errorf("controlPlaneComponents.apiServer.flags."+flag, "keep one of them",
			"names a configuration file, but features.encryptionProviders generates one")
	}
}
