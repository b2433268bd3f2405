package probe

import _ "embed" // the script

// Script is the text that runs on every host, as root, in POSIX sh. It changes nothing. Its first
// argument, argCredentials, makes it print the credentials of a control-plane host as well; the second is a nonce. Its
// head describes what it prints.
//
//go:embed script.sh
var Script string

// accessLine ends the part of the output that has all with which the cluster can be asked: credentials, certificates
// and the API server's port.
const accessLine = "access\t1\n"

const (
	argCredentials = "credentials"
	argFacts       = "facts"
)
