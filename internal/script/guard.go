package script

import "kubeone/internal/model/desired"

// guardUnit runs guard.sh from before the kubelet starts.
const guardUnit = `[Unit]
Description=keeps a control-plane host that comes back from serving what is no longer true
Before=kubelet.service

[Service]
ExecStart=/bin/sh /etc/kubeone/guard.sh start
ExecStopPost=/bin/sh /etc/kubeone/guard.sh stop
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target`

// guardProgram returns the program of that unit, or "" for workers, which have no such unit.
func guardProgram(r desired.Role) string {
	if r != desired.ControlPlane {
		return ""
	}
	text, err := stages.ReadFile("sh/files/guard.sh")
	if err != nil {
		panic(err) // embedded at build time
	}
	return string(text)
}
