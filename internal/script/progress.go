package script

import _ "embed" // of the script below

//go:embed sh/files/progress.sh
var progress string

// Progress is a script that prints what a control-plane host's data of etcd says. How far it had got is a line
// "metric REVISION" where its member runs, else "disk REVISION", or none where that cannot be found out. Its members
// are looked for where that is asked for: lines "member KEYJSON", several for one perhaps, and "removed KEYremoved" for
// those that have left; "searched" where these are all that there are. It changes nothing.
func Progress(members bool) string {
	if members {
		return "MEMBERS=yes\n" + progress
	}
	return "MEMBERS=no\n" + progress
}
