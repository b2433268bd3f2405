// Package folder reads and renders addons that the operator keeps in a folder: one subfolder for each addon, with
// manifests that may be templates. The layout, the values and the functions of the templates are those of KubeOne.
package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// RootName is the name of the addon whose files are in the folder itself, outside of all subfolders.
const RootName = "root"

const (
	maxFileBytes   = 8 << 20  // size of one file
	maxFolderBytes = 64 << 20 // size of all files of all addons
	maxAddons      = 500
)

// Addon is the files of one addon and the values that differ between addons.
type Addon struct {
	Name  string
	Files []File // sorted by name
	// Params are the values of .Params.
	Params map[string]string
	// DisableTemplating means that the files are used as they are.
	DisableTemplating bool
}

// File is one manifest of an addon.
type File struct {
	Path string // below the folder: "ingress/deployment.yaml"
	Text string
}

// Read returns the addons of a folder, sorted by name; an addon for files that are in no subfolder comes last. It reads
// files that end in .yaml, .yml or .json, and none in deeper folders. Symbolic links out of the folder are not followed
// if the file system is an os.Root's.
func Read(fsys fs.FS) ([]Addon, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, err
	}
	var out []Addon
	left := maxFolderBytes
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !isFolder(fsys, e) {
			continue
		}
		addon, err := readAddon(fsys, e.Name(), &left)
		if err != nil {
			return nil, err
		}
		if len(addon.Files) > 0 {
			out = append(out, addon)
		}
	}
	root, err := readFiles(fsys, ".", &left)
	if err != nil {
		return nil, err
	}
	if len(root) > 0 {
		if slices.ContainsFunc(out, func(a Addon) bool { return a.Name == RootName }) {
			return nil, fmt.Errorf("a subfolder named %s cannot be used together with files outside of subfolders",
				RootName)
		}
		out = append(out, Addon{Name: RootName, Files: root})
	}
	if len(out) > maxAddons {
		return nil, fmt.Errorf("it contains %d addons; the maximum is %d", len(out), maxAddons)
	}
	return out, nil
}

// CheckName returns an error unless the name can be the name of an addon. It becomes a label value and part of the name
// of a ConfigMap.
func CheckName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%.80q is not a valid addon name: use lower-case letters, digits and -, at most 63 characters",
			name)
	}
	return nil
}

func isFolder(fsys fs.FS, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	info, err := fs.Stat(fsys, e.Name())
	return err == nil && info.IsDir()
}

func readAddon(fsys fs.FS, name string, left *int) (Addon, error) {
	files, err := readFiles(fsys, name, left)
	if err != nil || len(files) == 0 {
		return Addon{}, err
	}
	if err := CheckName(name); err != nil {
		return Addon{}, err
	}
	return Addon{Name: name, Files: files}, nil
}

func readFiles(fsys fs.FS, dir string, left *int) ([]File, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, err
	}
	var out []File
	for _, e := range entries {
		switch strings.ToLower(path.Ext(e.Name())) {
		case ".yaml", ".yml", ".json":
		default:
			continue
		}
		at := path.Join(dir, e.Name())
		info, err := fs.Stat(fsys, at)
		if err != nil {
			return nil, err
		}
		if info.IsDir() {
			continue
		}
		if !info.Mode().IsRegular() {
			return nil, &fs.PathError{Op: "read", Path: at, Err: errors.New("not a regular file")}
		}
		if info.Size() > maxFileBytes {
			return nil, fmt.Errorf("%s: larger than %d MiB", at, maxFileBytes>>20)
		}
		if *left -= int(info.Size()); *left < 0 {
			return nil, fmt.Errorf("the files are larger than %d MiB together", maxFolderBytes>>20)
		}
		text, err := fs.ReadFile(fsys, at)
		if err != nil {
			return nil, err
		}
		out = append(out, File{Path: at, Text: string(text)})
	}
	return out, nil
}
