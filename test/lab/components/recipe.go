package components

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"runtime"
)

// Recipe describes binaries: the Go module to build and the published downloads. It is plain data whose digest is the
// key of the cache entry, so that any change causes a new build.
type Recipe struct {
	// Name is the component's short name; Module and Version are the Go module to build from.
	Name, Module, Version string
	// Packages maps each binary's name to the import path of its main package.
	Packages map[string]string
	// CGO links C code statically. Without it the binaries are static anyway.
	CGO bool
	// Tags are build tags. LDFlags follow -s -w.
	Tags, LDFlags string
	// Also lists other modules ("path@version") that are required in exactly these versions.
	Also []string
	// Stubs are Go files that stand in for modules which are not published, by module path.
	Stubs map[string]string `json:",omitempty"`
	// Unreplaced are modules whose replace directive in the module's go.mod is left out.
	Unreplaced []string `json:",omitempty"`
	// Downloads are published files with programs of Packages. They are not part of the digest.
	Downloads []Download `json:"-"`
}

// Digest identifies this recipe, built by this Go release.
func (r Recipe) Digest() string {
	return digestOf("recipe v1", runtime.Version(), runtime.GOARCH, r)
}

// digestOf hashes the JSON of its arguments to 12 hexadecimal digits.
func digestOf(parts ...any) string {
	text, err := json.Marshal(parts)
	if err != nil {
		panic("components: a recipe is not plain data: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}
