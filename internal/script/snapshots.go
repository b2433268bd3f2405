package script

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kubeone/internal/componentconfig"
	"kubeone/internal/model/desired"
)

// DefaultSnapshotReason is the last part of the name of a snapshot that a plan takes before a change.
const DefaultSnapshotReason = "before-change"

// SnapshotDir is the directory on a control-plane host for snapshots of its etcd member.
const SnapshotDir = "/var/lib/kubeone/snapshots"

// snapshotFiles returns the timer for scheduled snapshots, its service, and its script. For workers, these files are
// empty.
func snapshotFiles(in Input) ([]componentconfig.Text, error) {
	if in.Host.Role != desired.ControlPlane {
		return []componentconfig.Text{
			{Name: "file_snapshot_script"}, {Name: "file_snapshot_service"}, {Name: "file_snapshot_timer"},
		}, nil
	}
	script, err := memberProgram(in, "kubeone-snapshot.service", "take_snapshot scheduled")
	if err != nil {
		return nil, err
	}
	return []componentconfig.Text{
		{Name: "file_snapshot_script", Content: script},
		{Name: "file_snapshot_service", Content: snapshotService},
		{Name: "file_snapshot_timer", Content: snapshotTimer(in.Want)},
	}, nil
}

// memberProgram returns a program for a host's etcd member, which a service runs: snapshot.sh, the given files, and a
// call of one of their functions.
func memberProgram(in Input, service, call string, files ...string) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/sh\n# Written by kubeone; run by %s.\nset -eu\nexport LC_ALL=C\n", service)
	for _, v := range [][2]string{
		{"BIN", BinDir},
		{"NODE_NAME", in.NodeName},
		{"KEEP_SNAPSHOTS", strconv.Itoa(keepSnapshots(in.Want))},
	} {
		fmt.Fprintf(&b, "%s=%s\n", v[0], Quote(v[1]))
	}
	b.WriteString("say() { printf '%s\\n' \"$*\"; }\ndie() {\n\tprintf 'error: %s\\n' \"$*\" >&2\n\texit 1\n}\n\n")
	for i, name := range slices.Concat([]string{"sh/private.sh", "sh/snapshot.sh"}, files) {
		body, err := stages.ReadFile(name)
		if err != nil {
			return "", err
		}
		if i > 0 {
			b.WriteString("\n")
		}
		b.Write(body)
	}
	return b.String() + "\n" + call + "\n", nil
}

// keepSnapshots returns the number of snapshots that a host keeps. It is at least one, because the newest must not be
// deleted.
func keepSnapshots(want desired.Cluster) int { return max(1, want.Backup.Keep) }

const snapshotService = `[Unit]
Description=takes a verified snapshot of this host's etcd
ConditionPathExists=/etc/kubernetes/manifests/etcd.yaml
After=containerd.service

[Service]
Type=oneshot
ExecStart=/etc/kubeone/snapshot.sh
TimeoutStartSec=1800
Nice=10
IOSchedulingClass=idle`

// snapshotTimer returns a timer that first starts after a few minutes. It has a random delay, so that hosts do not take
// snapshots at the same time.
func snapshotTimer(want desired.Cluster) string {
	every := snapshotEvery(want)
	return fmt.Sprintf(`[Unit]
Description=scheduled snapshots of this host's etcd

[Timer]
OnActiveSec=%d
OnUnitActiveSec=%d
RandomizedDelaySec=%d
AccuracySec=5

[Install]
WantedBy=timers.target`, min(every, 300), every, min(every/10, 600))
}

// snapshotEvery returns the interval of scheduled snapshots in seconds; 0 means that there are none.
func snapshotEvery(want desired.Cluster) int { return int(want.Backup.Schedule.Seconds()) }
