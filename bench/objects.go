package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// objectsText is an addon, and the template of a chart, of five objects.
const objectsText = `apiVersion: v1
kind: ServiceAccount
metadata: {name: NAME, namespace: default}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: NAME, namespace: default}
data: {color: blue}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: NAME, namespace: default}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: default}
spec: {ports: [{port: 80}], selector: {app: NAME}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: default}
spec:
  replicas: 0
  selector: {matchLabels: {app: NAME}}
  template:
    metadata: {labels: {app: NAME}}
    spec: {containers: [{name: app, image: registry.example/app:1}]}
`

// addObjects adds addons and Helm releases to the lab's manifest, and applies them.
func (b *bench) addObjects(ctx context.Context) error {
	if b.addons+b.releases == 0 {
		return nil
	}
	files := map[string]string{}
	var manifest strings.Builder
	if b.addons > 0 {
		manifest.WriteString("addons: {path: ./bench-addons}\n")
	}
	for n := range b.addons {
		name := fmt.Sprintf("addon-%d", n)
		files[filepath.Join("bench-addons", name, "objects.yaml")] = strings.ReplaceAll(objectsText, "NAME", name)
	}
	if b.releases > 0 {
		manifest.WriteString("helmReleases:\n")
	}
	for n := range b.releases {
		name := fmt.Sprintf("release-%d", n)
		chart := filepath.Join("bench-charts", name)
		files[filepath.Join(chart, "Chart.yaml")] = "{apiVersion: v2, name: " + name + ", version: 1.0.0}\n"
		files[filepath.Join(chart, "templates", "objects.yaml")] = strings.ReplaceAll(objectsText, "NAME",
			"{{ .Release.Name }}")
		fmt.Fprintf(&manifest, "  - {chart: ./%s, releaseName: %s, namespace: default}\n", chart, name)
	}
	for name, text := range files {
		path := b.lab.Path(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(b.lab.Path("kubeone.yaml"))
	if err != nil {
		return err
	}
	if err := os.WriteFile(b.lab.Path("kubeone.yaml"), append(text, manifest.String()...), 0o600); err != nil {
		return err
	}
	_, err = b.applyManifest(ctx)
	return err
}
