package script

import _ "embed" // of the script below

//go:embed sh/files/progress.sh
var progress string

// Progress is a script that prints what a control-plane host's data of etcd says. How far it had got is a line
// "metric REVISION" where its member runs, else "disk REVISION", or none where that cannot be found out. The members are
// lines "member KEYJSON", several for one perhaps, and "removed KEYremoved" for those that have left. It changes
// nothing.
func Progress() string { return progress }
