package desired

// ControllersAddon is the name of the addon that has the controllers.
const ControllersAddon = "controllers"

// BundleDir is where control-plane hosts have the bundles from which the controllers install, as files *.tar. Everyone
// may read them: the controllers are not root.
const BundleDir = "/var/lib/kubeone/bundles"

// Controllers is what is needed to run the controllers in the cluster. Their image is made of this program, and is no
// part of a release: it is uploaded to the control-plane hosts, and so are bundles.
type Controllers struct {
	Image Image  `json:"image"`
	Arch  string `json:"arch"`  // of the image, as Go names it: they run on control-plane hosts of that one
	Index string `json:"index"` // index.json of an OCI image layout that has the image alone
	// Bundles are those that control-plane hosts are to have, for the controllers to install from.
	Bundles []BundleFile `json:"bundles,omitempty"`
}

// BundleFile is a bundle as control-plane hosts have it. Its name says what is in it: another content has another name.
type BundleFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // in bytes
}
