package script

import _ "embed" // of the script below

//go:embed sh/files/progress.sh
var progress string

// Progress returns a script that prints how far a control-plane host's etcd data has got: "metric REVISION" if its
// member runs, otherwise "disk REVISION", or nothing if that cannot be found out. If members is true, it also prints
// lines "member KEYJSON", possibly several for one member, "removed KEYremoved" for members that have left, and
// "searched" if these are all. The script changes nothing.
func Progress(members bool) string {
	if members {
		return "MEMBERS=yes\n" + progress
	}
	return "MEMBERS=no\n" + progress
}
