package components

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"runtime"
)

// Recipe says how binaries are built from one Go module, and where they are published. It is plain data, so that its
// digest can name the cache entry: a recipe that changes in any way is built again.
type Recipe struct {
	// Name is the component's short name; Module and Version are the Go module to build from.
	Name, Module, Version string
	// Packages maps the name of each binary to the import path of its main package.
	Packages map[string]string
	// CGO links C code, statically. Without it the binaries are static anyway.
	CGO bool
	// Tags are build tags, LDFlags go to the linker after -s -w.
	Tags, LDFlags string
	// Also lists further modules ("path@version") that the packages need at exactly these versions.
	Also []string
	// Downloads are where the project publishes programs of Packages. They do not count in the digest.
	Downloads []Download `json:"-"`
}

// Digest is a short name for this exact recipe built by this exact Go release.
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
