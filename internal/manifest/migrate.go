package manifest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"kubeone/api/kubeone/v1beta2"
)

// nextVersion is the apiVersion of KubeOne's next format, which has been written down, but is not in use there yet.
const nextVersion = "kubeone.k8c.io/v1beta3"

// Migrate returns a manifest of KubeOne's v1beta3 as one of v1beta2 that means the same. Comments stay where they are,
// blank lines do not. A manifest of v1beta2 is returned as it is. What v1beta2 has no words for is an error, and so is
// what is no field of either; whether the result makes a cluster is for Load to say. Of the options, the manifest's
// and Stdin count. Its error is a *Problems.
//
// The two formats differ in these fields; all others have the same name, type and meaning:
//
//   - containerRuntime.containerd.deviceOwnershipFromSecurityContext is true in v1beta3 where it is not set;
//   - clusterNetwork.cni.cilium.kubeProxyReplacement is a truth value;
//   - an item of addons.addons has an addon, a helmRelease, or both; there are no helmReleases at the top;
//   - certificateAuthority.bundle wins over caBundle, where both are set;
//   - clusterNetwork.dnsServiceIP is not in v1beta2.
func Migrate(o Options) ([]byte, error) {
	l := newLoader(o)
	data, err := l.manifestBytes()
	if err != nil {
		l.failFile(l.ManifestPath, "name the manifest with --manifest", fmt.Errorf("read the manifest: %w", err))
		return nil, l.problems()
	}
	root, ok := l.parseYAML(data)
	if !ok {
		return nil, l.problems()
	}
	version := value(root, "apiVersion")
	old := version != nil && version.Value == nextVersion
	if old {
		version.Value = v1beta2.APIVersion
	}
	if !l.rightKind(root) {
		return nil, l.problems()
	}
	if old {
		l.migrate(root)
	}
	switch l.decode(root); {
	case l.failed():
		return nil, l.problems()
	case !old:
		return data, nil
	}
	return encoded(root)
}

// migrate changes the fields of v1beta3 into those of v1beta2.
func (l *loader) migrate(root *yaml.Node) {
	l.migrateDNS(root)
	migrateContainerd(root)
	migrateCilium(root)
	migrateAuthorities(root)
	l.migrateAddons(root)
}

// migrateDNS drops an address that the cluster's DNS server has anyway.
func (l *loader) migrateDNS(root *yaml.Node) {
	network := value(root, "clusterNetwork")
	address := value(network, "dnsServiceIP")
	if address == nil {
		return
	}
	subnet := v1beta2.DefaultServiceSubnet
	if s := value(network, "serviceSubnet"); s != nil && s.Value != "" && !isNothing(s) {
		subnet = s.Value
	}
	if own := dnsAddress(subnet); !isNothing(address) && address.Value != "" && address.Value != own {
		l.lost("clusterNetwork.dnsServiceIP", address, "remove it: the cluster's DNS server has the tenth address "+
			"of serviceSubnet")
	}
	remove(network, "dnsServiceIP")
}

// lost reports a setting that the result would not have.
func (l *loader) lost(path string, at *yaml.Node, hint string) {
	l.found = append(l.found, Problem{
		File: l.ManifestPath, Line: at.Line, Column: at.Column, Path: path, Severity: Error,
		Message: "has no counterpart in v1beta2", Hint: hint,
	})
}

// migrateContainerd writes down the one default that differs.
func migrateContainerd(root *yaml.Node) {
	const name = "deviceOwnershipFromSecurityContext"
	containerd := mapping(mapping(root, "containerRuntime"), "containerd")
	if containerd == nil {
		return
	}
	if set := value(containerd, name); set == nil || isNothing(set) {
		remove(containerd, name)
		add(containerd, name, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true", Line: containerd.Line,
			Column: containerd.Column})
	}
}

func migrateCilium(root *yaml.Node) {
	cilium := value(value(value(root, "clusterNetwork"), "cni"), "cilium")
	replaces := value(cilium, "kubeProxyReplacement")
	if replaces == nil || replaces.ShortTag() != "!!bool" {
		return
	}
	replaces.Tag = "!!str"
	if strings.EqualFold(replaces.Value, "true") {
		replaces.Value = "strict"
	} else {
		replaces.Value = "disabled"
	}
}

// migrateAuthorities drops a caBundle that counts for nothing.
func migrateAuthorities(root *yaml.Node) {
	if bundle := value(value(root, "certificateAuthority"), "bundle"); bundle != nil && bundle.Value != "" &&
		!isNothing(bundle) {
		remove(root, "caBundle")
	}
}

// migrateAddons takes the one list apart: addons stay, Helm releases go to the top.
func (l *loader) migrateAddons(root *yaml.Node) {
	addons := value(root, "addons")
	list := value(addons, "addons")
	if list == nil || list.Kind != yaml.SequenceNode {
		return
	}
	var kept, releases []*yaml.Node
	for i, item := range list.Content {
		addon, release := value(item, "addon"), value(item, "helmRelease")
		if addon == nil && release == nil {
			kept = append(kept, item)
			continue
		}
		l.onlyReferences(v1beta2.Item("addons.addons", i), item)
		if addon != nil && !isNothing(addon) {
			kept = append(kept, commented(addon, item))
		}
		if release != nil && !isNothing(release) {
			releases = append(releases, commented(release, item))
		}
	}
	if list.Content = kept; len(kept) == 0 {
		remove(addons, "addons")
	}
	if len(addons.Content) == 0 {
		remove(root, "addons")
	}
	if len(releases) == 0 {
		return
	}
	if there := value(root, "helmReleases"); there != nil && there.Kind == yaml.SequenceNode {
		there.Content = append(there.Content, releases...)
		return
	}
	remove(root, "helmReleases")
	add(root, "helmReleases", &yaml.Node{Kind: yaml.SequenceNode, Line: releases[0].Line, Content: releases})
}

// onlyReferences reports what an item of v1beta3's addons must not have, as it would be lost.
func (l *loader) onlyReferences(path string, item *yaml.Node) {
	known := []string{"addon", "helmRelease"}
	for i := 0; i+1 < len(item.Content); i += 2 {
		key := item.Content[i]
		if slices.Contains(known, key.Value) || key.ShortTag() == "!!merge" {
			continue
		}
		l.found = append(l.found, Problem{
			File: l.ManifestPath, Line: key.Line, Column: key.Column, Path: v1beta2.Child(path, key.Value),
			Message: "is not a field of a manifest", Hint: "known here: " + strings.Join(known, ", "), Severity: Error,
		})
	}
}

// commented gives what is inside an item of a list the item's own comment, if it has none.
func commented(inside, item *yaml.Node) *yaml.Node {
	if inside.HeadComment == "" {
		inside.HeadComment = item.HeadComment
	}
	return inside
}

// encoded is the tree as text, its first comment apart from the rest.
func encoded(root *yaml.Node) ([]byte, error) {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	document := &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{root},
		HeadComment: root.HeadComment, FootComment: root.FootComment}
	root.HeadComment, root.FootComment = "", ""
	if err := e.Encode(document); err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	if err := e.Close(); err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return out.Bytes(), nil
}
