package settings

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
	"kubeone/internal/text/diff"
)

// digestInName matches the part of a component file's name that is its content's digest.
var digestInName = regexp.MustCompile(`-[0-9a-f]{16}(\.[a-z]+)?$`)

// componentFiles compares the files that components read. Changed content changes the file's name, and so its flag; the
// file is compared with the one it replaces. Secret content is not shown. Nor is that of removed files, because the
// manifest no longer says whether it was secret.
func componentFiles(in componentconfig.Input, live Live) []diff.Change {
	had := map[string]string{} // path by what the file is
	for p := range live.Texts {
		if isOfComponent(p) {
			had[digestInName.ReplaceAllString(p, "$1")] = p
		}
	}
	var out []diff.Change
	for _, f := range componentconfig.ComponentFiles(in) {
		of := digestInName.ReplaceAllString(f.Path, "$1")
		before := had[of]
		delete(had, of)
		switch {
		case before == f.Path: // the content is unchanged too
		case live.Cut[before]:
			out = append(out, diff.Summary(of, tooLong))
		case f.Secret && before == "":
			out = append(out, diff.Change{Of: of, Lines: []string{"@@ -0,0 +1,1 @@", "+" + diff.Secret}})
		case f.Secret:
			out = append(out, otherSecret(of))
		default:
			out = append(out, changeOf(of, live.Texts[before], f.Content)...)
		}
	}
	for _, of := range slices.Sorted(maps.Keys(had)) {
		out = append(out, diff.Summary(of, "it will be removed; it is not shown, because it may contain secrets"))
	}
	return out
}

func isOfComponent(p string) bool {
	return slices.ContainsFunc(componentconfig.ComponentPatterns(), func(pattern string) bool {
		return strings.HasPrefix(p, path.Dir(pattern)+"/")
	})
}

func changeOf(of, is, will string) []diff.Change {
	if c, differs := diff.Of(of, is, will); differs {
		return []diff.Change{c}
	}
	return nil
}

func otherSecret(of string) diff.Change {
	return diff.Change{Of: of, Lines: []string{"@@ -1,1 +1,1 @@", "-" + diff.Secret, "+" + diff.ChangedSecret}}
}

// OfCredentials returns a plan's changes to a host's credentials for registries and proxies, without their content.
func OfCredentials(names []string, is observed.Host) []diff.Change {
	if !slices.Contains(names, desired.CredentialsConfiguration) {
		return nil
	}
	var out []diff.Change
	for _, c := range is.CredentialsToChange() {
		switch c.Is {
		case observed.CredentialMissing:
			out = append(out, diff.Change{Of: c.Of, Lines: []string{"@@ -0,0 +1,1 @@", "+" + diff.Secret}})
		case observed.CredentialExtra:
			out = append(out, diff.Change{Of: c.Of, Lines: []string{"@@ -1,1 +0,0 @@", "-" + diff.Secret}})
		default:
			out = append(out, otherSecret(c.Of))
		}
	}
	return out
}
