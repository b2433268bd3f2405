package script

import _ "embed" // of the script below

//go:embed sh/files/progress.sh
var progress string

// Progress returns a script that prints the revision of the etcd data on a control-plane host: "metric REVISION" if its
// member is running, otherwise "disk REVISION", or nothing if the revision cannot be read. If members is true, it also
// prints lines "member KEYJSON", possibly several for one member, "removed KEYremoved" for members that have left, and
// "searched" if the list is complete. The script changes nothing.
func Progress(members bool) string {
	if members {
		return "MEMBERS=yes\n" + progress
	}
	return "MEMBERS=no\n" + progress
}
