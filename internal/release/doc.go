// Package release knows which binaries and container images make up a Kubernetes version, where they come from and what
// their digests are.
//
// There are three sources. The official locations are the default: dl.k8s.io, the projects' releases on GitHub and
// their registries. A mirror is an HTTP server that has the same files under BASE/HOST/PATH, and a registry that has
// the same repositories under its own name. A bundle is one file with all of it, made by Create from one of the others,
// for hosts that reach nothing but the operator.
//
// Resolve and Bundle.For both answer with desired.Artifacts: what to install, each with the digest that it is checked
// against. From there on nobody needs to know which source it was, but for Artifacts.Pushed.
package release
