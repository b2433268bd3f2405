package script

import _ "embed" // of the script below

//go:embed sh/files/progress.sh
var progress string

// Progress is a script that prints how far a control-plane host's etcd had got: a line "metric REVISION" where its
// member runs, else "disk REVISION", or nothing where that cannot be found out. It changes nothing.
func Progress() string { return progress }
