# stages regenerate and quarantine: a member gets again what it lacks, or leaves so that it can join again.
#
# Variables:
#
#	PARTS  list of kubelet-settings, certificates, kubelet-credentials, kubelet-serving and names of static pods; set by
#	       RegenerateParams in internal/plan/step/repair.go

# stage_regenerate writes $PARTS again.
stage_regenerate() {
	RESTART_PODS=no # yes: restart all static pods
	systemctl is-active --quiet containerd || systemctl start containerd
	[ "$ROLE" = worker ] || wait_for 60 "containerd" "$BIN/ctr" version
	for part in $PARTS; do
		say "writing $part again"
		case $part in
		kubelet-settings) rewrite_settings ;;
		certificates) renew_certificates ;;
		kubelet-serving) rm -f "$SERVING_CERT" ;; # the kubelet requests a new one when it starts
		kubelet-credentials) if [ "$ROLE" = worker ]; then bootstrap_kubelet; else sign_kubelet; fi ;;
		kube-apiserver)
			# The kubelet has ended the pod, because it missed the manifest, and would wait for its slow end.
			readyz >/dev/null 2>&1 || {
				end_pod "$part"
				await_end 10 "$part"
			}
			write_manifest "$part"
			;;
		*) write_manifest "$part" ;;
		esac
	done
	systemctl -q enable containerd kubelet
	if [ "$RESTART_PODS" = yes ]; then
		systemctl stop kubelet
		# etcd reads certificates for each connection. Do not restart a member that votes: this step may be a repetition,
		# and the others may need it by now.
		if etcd_votes; then end_api; else end_static_pods; fi
	fi
	# After a restart, the kubelet starts static pods at once, however often they have failed before.
	systemctl restart kubelet
	wait_for 120 "the kubelet's /healthz" kubelet_healthy
	[ "$ROLE" = worker ] || {
		wait_for_pods etcd 240 "this host's etcd member" etcd_votes
		await_api_server 240
		wait_for_pods "kube-controller-manager kube-scheduler" 240 "this host's controller manager and scheduler" \
			controllers_healthy
	}
	case " $PARTS " in
	*" kubelet-credentials "*) settle_kubelet ;;
	esac
	case " $PARTS " in
	*" kubelet-serving "*) wait_for 120 "the kubelet's serving certificate" test -s "$SERVING_CERT" ;;
	esac
	[ "$RESTART_PODS" = no ] || renew_kubeconfigs
	keep
}

# file_cluster_now prints kubeadm's configuration with the version of this host's kubeadm, so that it upgrades nothing.
file_cluster_now() {
	version=$(kubeadm version -o short)
	file_cluster | sed "s/^kubernetesVersion: .*/kubernetesVersion: $version/"
}

# renew_certificates renews the certificates of components. A plan sees by admin.conf whether the renewal is complete:
# see renew_kubeconfigs.
renew_certificates() {
	config=$(plain_config file_cluster_now)
	for name in apiserver apiserver-kubelet-client apiserver-etcd-client front-proxy-client etcd-server etcd-peer \
		etcd-healthcheck-client controller-manager.conf scheduler.conf; do
		kubeadm certs renew "$name" --config "$config"
	done
	RESTART_PODS=yes
}

# renew_kubeconfigs renews the administrators' kubeconfigs, after all components have restarted. If a renewal was killed
# before that, the next plan repeats all of it.
renew_kubeconfigs() {
	config=$(plain_config file_cluster_now)
	for name in super-admin.conf admin.conf; do
		[ ! -f "/etc/kubernetes/$name" ] || kubeadm certs renew "$name" --config "$config"
	done
}

# end_pod NAME [SIGNAL] ends the containers of a static pod; the kubelet starts them again while it has the manifest.
end_pod() {
	for id in $(containers_of "$1"); do
		"$BIN/ctr" -n k8s.io tasks kill --signal "${2:-SIGTERM}" "$id" 2>/dev/null || true
	done
}

# await_end SECONDS NAME waits for the end of a static pod, and kills it after SECONDS. A stopping API server takes a
# minute for its last requests, but accepts no new ones.
await_end() { (wait_for "$1" "$2 to end" ended "$2") 2>/dev/null || end_pod "$2" SIGKILL; }

# running_as NAME prints the IDs of the running containers of a static pod.
running_as() {
	tasks=$("$BIN/ctr" -n k8s.io tasks ls 2>/dev/null | sed -n 's/^\([^ ]*\) .*RUNNING.*/\1/p')
	containers_of "$1" | while read -r id; do
		! printf '%s\n' "$tasks" | grep -qxF "$id" || printf '%s\n' "$id"
	done
}

# ended NAME succeeds if no container of the static pod runs.
ended() { [ -z "$(running_as "$1")" ]; }

forget_kubelet_credentials() {
	systemctl stop kubelet
	rm -f /etc/kubernetes/kubelet.conf "$CLIENT_CERT"
	forget_bootstrap_key
}

# sign_kubelet signs new credentials for the kubelet of a host with the CA. The kubelet then requests its own
# certificate.
sign_kubelet() {
	config=$(plain_config file_cluster_now)
	forget_kubelet_credentials
	kubeadm init phase kubeconfig kubelet --config "$config"
	kubelet_asks "$LOCAL_ENDPOINT"
}

# bootstrap_kubelet makes a worker's kubelet request new credentials with a join token. Its Node and pods stay.
bootstrap_kubelet() {
	discovery=$(secret discovery.conf)
	forget_kubelet_credentials
	if [ ! -s /var/lib/kubelet/config.yaml ]; then
		config=$(kubeadm_config file_join)
		forget_files /var/lib/kubelet/config.yaml
		kubeadm join phase kubelet-start --config "$config"
		file_modes
		note_files /var/lib/kubelet/config.yaml
		return 0
	fi
	[ -s /etc/kubernetes/pki/ca.crt ] || put /etc/kubernetes/pki/ca.crt 0644 discovered_ca
	mkdir -p /etc/kubernetes/manifests
	(
		umask 077
		with_secrets bootstrap_text >/etc/kubernetes/bootstrap-kubelet.conf
	)
}

# discovered_ca prints the cluster's CA from the discovery file.
discovered_ca() { sed -n 's/^ *certificate-authority-data: *//p' "$discovery" | base64 -d; }

bootstrap_text() {
	printf 'apiVersion: v1\nkind: Config\ncurrent-context: bootstrap\n'
	printf 'clusters:\n- name: cluster\n  cluster:\n'
	printf '    certificate-authority: /etc/kubernetes/pki/ca.crt\n    server: %s\n' "$ENDPOINT"
	printf 'contexts:\n- name: bootstrap\n  context:\n    cluster: cluster\n    user: bootstrap\n'
	printf 'users:\n- name: bootstrap\n  user:\n    token: @TOKEN@\n'
}

# settle_kubelet waits for the kubelet's own certificate, and removes its other credentials.
settle_kubelet() {
	if [ "$ROLE" = worker ]; then
		kubelet_bootstrapped
	else
		wait_for 120 "the kubelet's client certificate" test -s "$CLIENT_CERT"
		config=$(plain_config file_cluster_now)
		kubeadm init phase kubelet-finalize enable-client-cert-rotation --config "$config"
		wait_for 120 "the kubelet's /healthz" kubelet_healthy
	fi
}

# write_manifest NAME writes a static pod's manifest.
write_manifest() {
	config=$(plain_config file_cluster_now)
	mkdir -p /etc/kubernetes/manifests
	chmod 0700 /etc/kubernetes/manifests
	forget_files "/etc/kubernetes/manifests/$1.yaml"
	case $1 in
	etcd)
		[ -d /var/lib/etcd/member ] ||
			die "/var/lib/etcd/member is gone: an etcd without its data must not start as the member that it was"
		guard_etcd
		kubeadm init phase etcd local --config "$config"
		keep_etcd_image ""
		;;
	*)
		[ "$1" != kube-apiserver ] || encryption_stays
		component_files
		kubeadm init phase control-plane "${1#kube-}" --config "$config"
		;;
	esac
	image_there "/etc/kubernetes/manifests/$1.yaml"
	note_files "/etc/kubernetes/manifests/$1.yaml"
}

# image_there MANIFEST warns if the image of a static pod is not in containerd.
image_there() {
	image=$(sed -n 's/^ *image: *//p' "$1")
	"$BIN/ctr" -n k8s.io images ls -q | grep -qxF "$image" ||
		say "warning: the image $image is not on this host: the kubelet pulls it where it can; otherwise bring it"
}

# keep_etcd_image IMAGE makes etcd's manifest name an image that containerd has, preferably IMAGE, if kubeadm names
# another.
keep_etcd_image() {
	manifest=/etc/kubernetes/manifests/etcd.yaml
	images=$("$BIN/ctr" -n k8s.io images ls -q | grep '/etcd:' | sort)
	wanted=$(sed -n 's/^ *image: *//p' "$manifest")
	[ -n "$images" ] && ! printf '%s\n' "$images" | grep -qxF "$wanted" || return 0
	found=$(printf '%s\n' "$images" | grep -xF "$1" || printf '%s\n' "$images" | sed -n '$p')
	sed -i "s|^\( *image: \).*|\1$found|" "$manifest"
}

# stage_quarantine stops this host's control plane and kubelet, and moves aside the remains of etcd and everything that
# the join makes again. The host then counts as one with an incomplete join. Its kubelet stays off until the join: after
# an interrupted upgrade it may be newer than the other hosts' API servers. The marker changes near the end: until then,
# a plan repeats this stage.
stage_quarantine() {
	aside=$(dated /var/lib/kubeone-old/)
	private "$aside"
	systemctl stop kubelet
	for name in $STATIC_PODS; do set_aside "/etc/kubernetes/manifests/$name.yaml"; done
	wait_for 60 "the end of this host's control plane" no_static_pods
	if [ -e /var/lib/etcd/member ]; then
		lost=$aside/var-lib-etcd-member
		if fixed /var/lib/etcd; then # keep it on its disk
			lost=$(dated /var/lib/etcd/kubeone-lost-)/member
			private "${lost%/*}"
		fi
		mv /var/lib/etcd/member "$lost"
	fi
	# The join makes these again, for the desired names and with new validity. CAs and service-account keys stay.
	for cert in /etc/kubernetes/pki/*.crt /etc/kubernetes/pki/etcd/*.crt; do
		case $cert in
		*/ca.crt | */front-proxy-ca.crt) ;;
		*) set_aside "${cert%.crt}.key" && set_aside "$cert" ;; # the certificate last: a repetition finds it
		esac
	done
	for name in admin controller-manager scheduler; do set_aside "/etc/kubernetes/$name.conf"; done
	rm -rf /var/log/pods/kube-system_etcd-*
	mark no
	COMPLETE=no
	put "$MARKER" 0644 marker_text
	set_aside /etc/kubernetes/kubelet.conf
	rm -f "$CLIENT_CERT"
	rmdir "$aside" 2>/dev/null || true
}

# set_aside PATH moves a file, if it exists, to $aside.
set_aside() { [ ! -f "$1" ] || mv "$1" "$aside/"; }

# no_static_pods kills the containers of all static pods, and succeeds if none is left.
no_static_pods() {
	for name in $STATIC_PODS; do end_pod "$name" SIGKILL; done
	for name in $STATIC_PODS; do ended "$name" || return 1; done
}
