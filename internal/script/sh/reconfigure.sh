# stage reconfigure: applies other settings, without changing versions. It writes only what differs, and restarts only
# what reads it. If a component does not start with the new settings, the stage restores all of the old ones.
#
# Variables:
#
#	CONFIGURATIONS        list of the configurations that differ, such as kubelet; set by ReconfigureParams in
#	                      internal/plan/step/reconfigure.go
#	RECONFIGURE_DISCARDS  yes: overwrite static pods that were edited; set there, too
#	SANDBOX_NAMED         yes|no: the manifest names the image of sandboxes; set by script.go
#	BEFORE                directory of the host's former files; set by script.go

stage_reconfigure() {
	if [ "$ROLE" = control-plane ]; then
		DISCARD_EDITS=$RECONFIGURE_DISCARDS
		if rewrites_pods; then
			static_pods_ours
			encryption_stays
		fi
		wait_for 60 "this host's API server" readyz
		wait_for 60 "this host's etcd member" etcd_votes
	fi
	[ "$CONFIGURATIONS" = credentials ] || wait_for 60 "the kubelet's /healthz" kubelet_healthy
	[ "$(df -Pk /var/lib | awk 'NR == 2 { print $4 }')" -gt 65536 ] ||
		die "less than 64 MiB are free below /var/lib: free some space and apply again"
	keep_settings
	[ "$CONFIGURATIONS" = credentials ] || begin_upgrade
	set +e # and not "( ... ) || status=...": in a condition, set -e has no effect in the subshell
	(
		set -e
		change_settings
	) 2>"$BEFORE/errors"
	status=$?
	set -e
	cat "$BEFORE/errors" >&2
	[ "$status" = 0 ] || refused "$(last_error)"
	if [ "$CONFIGURATIONS" = credentials ]; then rm -rf "$BEFORE"; else end_upgrade; fi
}

# last_error prints the last error message of the errors file in $BEFORE.
last_error() {
	why=$(sed -n 's/^error: //p' "$BEFORE/errors" | sed -n '$p')
	[ -n "$why" ] || why=$(sed -n '$p' "$BEFORE/errors")
	printf '%s\n' "${why:-the settings could not be changed}"
}

# refused WHY restores the old settings and dies, with exit status 65 if that succeeded. If it failed, the host stays
# marked as changing, and the next apply resumes there.
refused() {
	say "restoring the old settings"
	(take_settings_back) ||
		die "$1; and what this host had before does not start any more either: correct that, and apply again"
	(die "$1; this host has again what it had before. Correct the manifest, and apply again") || exit 65
}

# differs_now NAME succeeds if the configuration NAME is in the list CONFIGURATIONS.
differs_now() { case " $CONFIGURATIONS " in *" $1 "*) ;; *) return 1 ;; esac; }

# rewrites_pods succeeds if static pods change.
rewrites_pods() { differs_now components; }

# settings_files prints the paths of all files with settings. They have no spaces.
settings_files() {
	for name in kernel containerd kubelet components; do files_of "$name"; done
	printf '%s\n' /etc/crictl.yaml /etc/kubeone/ca/bundle.pem /var/lib/kubelet/kubeadm-flags.env
	credential_paths
	for file in /etc/kubeone/patches/*; do printf '%s\n' "$file"; done
}

# keep_settings copies these files to $BEFORE, for root only.
keep_settings() {
	rm -rf "$BEFORE"
	(
		umask 077
		mkdir -p "$BEFORE/files"
		settings_files | while read -r file; do
			[ -f "$file" ] || continue
			mkdir -p "$BEFORE/files${file%/*}"
			cp -p "$file" "$BEFORE/files$file"
		done
	)
	on_disk "$BEFORE"
}

# is_another FILE... succeeds if one of the files differs from its copy in $BEFORE.
is_another() {
	for file in "$@"; do
		if [ -f "$file" ] || [ -f "$BEFORE/files$file" ]; then cmp -s "$file" "$BEFORE/files$file" || return 0; fi
	done
	return 1
}

change_settings() {
	if [ "$CONFIGURATIONS" = credentials ]; then
		change_credentials
		return
	fi
	beat=$(ready_beat) restarted=no
	! differs_now swap || swap_off
	! differs_now kernel || kernel_settings
	! differs_now firewall || configure_firewalls
	for addon in etcd-defrag unattended-upgrades; do
		! differs_now "$addon" || configure_host_addon "$addon"
	done
	if differs_now containerd || differs_now credentials; then change_runtime; fi
	! differs_now kubelet || write_kubelet
	! rewrites_pods || change_control_plane
	# After a change of containerd, too: the kubelet restarts and reports whether they work together.
	# shellcheck disable=SC2046 # a list
	if is_another $(files_of kubelet) /var/lib/kubelet/kubeadm-flags.env \
		/etc/containerd/config.toml /etc/kubeone/ca/bundle.pem \
		/etc/systemd/system/containerd.service /etc/systemd/system/containerd.service.d/kubeone-proxy.conf; then
		[ "$restarted" = yes ] || restart_kubelet
		await_kubelet "Node $NODE_NAME to be Ready" ready_since "$beat"
	fi
	if [ "$ROLE" = control-plane ] && { differs_now kubelet || rewrites_pods; }; then
		kubeadm init phase upload-config all --config "$(plain_config file_cluster_now)"
	fi
}

# tell_changes FILE prints the changed lines of a static pod's manifest, 20 at most. Manifests contain no secrets.
tell_changes() {
	say "$1 changes:"
	{
		grep -vxF -f "$1" "$BEFORE/files$1" | sed 's/^ */  - /'
		grep -vxF -f "$BEFORE/files$1" "$1" | sed 's/^ */  + /'
	} 2>/dev/null | sed -n '1,20p'
}

# change_runtime configures containerd. If the manifest does not name the sandbox image, it keeps the present one: only
# an upgrade replaces it.
change_runtime() {
	if [ "$SANDBOX_NAMED" = no ] && grep -qs '^ *sandbox = ' /etc/containerd/config.toml; then
		RUNTIME_CONFIG=config_with_this_sandbox
	fi
	configure_runtime
	wait_for 60 "containerd" "$BIN/ctr" version
	! other_credentials || runtime_serves
}

# change_credentials changes only credentials, since it may not be this host's turn for other settings. If the run is
# killed, the file DIRTY tells the next plan that containerd has not read them.
change_credentials() {
	CHANGED=no
	[ ! -e "$RUNTIME_DIRTY" ] || CHANGED=yes
	credential_files
	DIRTY=$RUNTIME_DIRTY
	start_runtime
	wait_for 60 "containerd" "$BIN/ctr" version
	runtime_serves
}

# runtime_serves waits for containerd's CRI plugin, which may refuse a configuration while containerd itself runs.
runtime_serves() {
	wait_for 60 "containerd to serve the kubelet with the new credentials" cri_runs
}

# cri_runs succeeds if containerd's CRI plugin has started.
cri_runs() {
	"$BIN/ctr" plugins ls |
		grep -Eq '^io\.containerd\.grpc\.v1[[:space:]]+cri[[:space:]]+[^[:space:]]+[[:space:]]+ok[[:space:]]*$'
}

# config_with_this_sandbox prints containerd's configuration with the sandbox image that is in use.
config_with_this_sandbox() {
	sandbox=$(grep '^ *sandbox = ' /etc/containerd/config.toml)
	file_containerd_config | while IFS= read -r line; do
		case $line in *" sandbox = "*) printf '%s\n' "$sandbox" ;; *) printf '%s\n' "$line" ;; esac
	done
}

# restart_kubelet restarts the kubelet and waits for it.
restart_kubelet() {
	systemctl reset-failed kubelet.service 2>/dev/null || true
	systemctl restart kubelet.service || true
	await_kubelet "the kubelet to be healthy" kubelet_healthy
}

# await_kubelet WHAT COMMAND... polls until the command succeeds, after the kubelet has been started. It dies after
# three restarts, because a kubelet can answer for a moment before it ends, or after two minutes.
await_kubelet() {
	what=$1
	shift
	deadline=$(($(date +%s) + 120))
	until "$@" >/dev/null 2>&1; do
		[ "$(systemctl show -p NRestarts --value kubelet.service)" -lt 3 ] ||
			die "the kubelet does not start: $(kubelet_error)"
		[ "$(date +%s)" -lt "$deadline" ] || die "gave up after 120 s waiting for $what: $(kubelet_error)"
		sleep "$POLL"
	done
}

# change_control_plane writes the manifests of all static pods.
change_control_plane() {
	exempt_namespaces
	component_files
	# shellcheck disable=SC2086 # a list
	change_pods $STATIC_PODS
}

# change_pods NAME... writes static pods while the kubelet is stopped, and restarts those that have changed.
change_pods() {
	systemctl stop kubelet
	CHANGED_PODS=
	for name in "$@"; do
		write_manifest "$name"
		manifest=/etc/kubernetes/manifests/$name.yaml
		if [ "$name" = etcd ] && same_but_founding "$BEFORE/files$manifest" "$manifest"; then
			cp -p "$BEFORE/files$manifest" "$manifest"
			note_files "$manifest"
		fi
		if is_another "$manifest"; then
			CHANGED_PODS="$CHANGED_PODS $name"
			tell_changes "$manifest"
		fi
	done
	# shellcheck disable=SC2086 # a list
	restart_pods $CHANGED_PODS
	restarted=yes
}

# restart_pods NAME... ends static pods, and starts the stopped kubelet, which starts them again.
restart_pods() {
	case " $* " in
	*" etcd "*) wait_for 60 "etcd to have a quorum without this host's member" others_vote ;;
	esac
	had=$(for name in "$@"; do containers_of "$name"; done | tr '\n' ' ')
	for name in "$@"; do
		end_pod "$name"
		await_end 10 "$name"
	done
	for name in "$@"; do
		case $name in kube-controller-manager | kube-scheduler) give_up_leases "$name" ;; esac
	done
	restart_kubelet
	for name in "$@"; do await_pod "$name"; done
}

# same_but_founding OLD NEW succeeds if two manifests of etcd differ at most in --initial-cluster flags. A member does
# not read them after it has begun or joined a cluster.
same_but_founding() {
	[ -f "$1" ] && [ "$(grep -v -e '--initial-cluster' "$1")" = "$(grep -v -e '--initial-cluster' "$2")" ]
}

# await_pod NAME waits for a static pod. It dies after the pod's third start, or after two minutes.
await_pod() {
	deadline=$(($(date +%s) + 120)) came=
	until component_answers "$1" >/dev/null 2>&1; do
		for id in $(containers_of "$1"); do
			case " $had $came " in *" $id "*) ;; *) came="$came $id" ;; esac
		done
		# shellcheck disable=SC2086 # a list
		if [ "$(set -- $came && printf '%s' $#)" -ge 3 ] || [ "$(date +%s)" -ge "$deadline" ]; then
			die "$1 does not start with its new settings$(pods=$1 && last_words)"
		fi
		sleep "$POLL"
	done
}

# component_answers NAME succeeds if this host's static pod is healthy.
component_answers() {
	case $1 in
	etcd) etcd_votes ;;
	kube-apiserver) readyz ;;
	kube-controller-manager) answers https://127.0.0.1:10257/healthz ;;
	kube-scheduler) answers https://127.0.0.1:10259/healthz ;;
	esac
}

# ready_beat prints the time of the kubelet's last heartbeat with condition Ready; nothing if its Node is not Ready.
ready_beat() {
	asked /etc/kubernetes/kubelet.conf "$(sed -n 's/^ *server: *//p' /etc/kubernetes/kubelet.conf | sed -n 1p)" \
		"/api/v1/nodes/$NODE_NAME" 2>/dev/null |
		tr -d ' \n' | sed -n 's/.*"type":"Ready","status":"True","lastHeartbeatTime":"\([^"]*\)".*/\1/p'
}

# ready_since BEAT succeeds if the Node is Ready and its last heartbeat is another than BEAT.
ready_since() {
	now=$(ready_beat)
	[ -n "$now" ] && [ "$now" != "$1" ]
}

# take_settings_back restores all files, and restarts what reads them. Its caller runs it in a condition, where set -e
# has no effect: if a file cannot be written, the rest is restarted all the same. Then it dies and names the file.
take_settings_back() {
	systemctl stop kubelet 2>/dev/null || true
	runtime=no
	# shellcheck disable=SC2046 # a list
	! is_another $(files_of containerd) /etc/kubeone/ca/bundle.pem || runtime=yes
	! other_credentials || runtime=yes
	back=
	for name in $STATIC_PODS; do
		! is_another "/etc/kubernetes/manifests/$name.yaml" || back="$back $name"
	done
	lost=$({
		(cd "$BEFORE/files" && find . -type f | sed 's/^\.//')
		settings_files
	} | sort -u | while read -r file; do put_as_it_was "$file" || printf ' %s' "$file"; done)
	systemctl daemon-reload
	sysctl -q -e -p /etc/sysctl.d/99-zz-kubeone.conf 2>/dev/null || true
	if [ "$runtime" = yes ]; then
		systemctl reset-failed containerd.service 2>/dev/null || true
		systemctl restart containerd.service
		rm -f "$RUNTIME_DIRTY"
	fi
	for name in $back; do
		end_pod "$name"
		await_end 10 "$name"
	done
	systemctl reset-failed kubelet.service 2>/dev/null || true
	systemctl restart kubelet.service
	[ -z "$lost" ] || die "cannot write again:$lost"
	wait_for 120 "the kubelet's /healthz" kubelet_healthy
	if [ "$ROLE" = control-plane ]; then
		wait_for_pods etcd 240 "this host's etcd member" etcd_votes
		await_api_server 240
		wait_for_pods "kube-controller-manager kube-scheduler" 120 "this host's controller manager and scheduler" \
			controllers_healthy
	fi
	# shellcheck disable=SC2046 # lists
	note_files $(for name in containerd kernel kubelet components; do files_of "$name"; done)
	keep
	rm -f "$UPGRADING"
	rm -rf "$BEFORE"
}

# put_as_it_was FILE restores a file from $BEFORE in one rename, or deletes it if there was none.
put_as_it_was() {
	kept=$BEFORE/files$1
	if [ ! -f "$kept" ]; then
		rm -f "$1"
	elif ! cmp -s "$kept" "$1"; then
		mkdir -p "${1%/*}" && cp -p "$kept" "$1.kubeone" && on_disk "$1.kubeone" && mv -f "$1.kubeone" "$1"
	fi
}
