# stages api-names and dial: moves the API's clients to another endpoint.
#
# Variables, set by APINamesParams in internal/plan/step/reconfigure.go, all lists of DNS names, patterns and addresses:
#
#	ADD_NAMES   names that the API server's certificate gets
#	KEEP_NAMES  names that are no longer in the manifest, but stay in the certificate
#	DROP_NAMES  names that the certificate loses

# stage_api_names makes the API server's certificate for the manifest's names, $KEEP_NAMES and $ADD_NAMES, and waits
# until the API server presents it. The API server reloads it by itself. Clients that use a name that stays notice
# nothing.
stage_api_names() {
	pki=/etc/kubernetes/pki
	made=$pki/.new
	rm -rf "$made"
	(umask 077 && mkdir "$made")
	ln -s ../ca.crt ../ca.key "$made/"
	file_cluster_now | with_names >"$made/config.yaml"
	kubeadm init phase certs apiserver --config "$made/config.yaml"
	patterns=$(sed -n "s/^ *- [\"']*\([*]\.[^\"']*\)[\"']*\$/\1/p" "$made/config.yaml" | tr '\n' ' ')
	on_disk "$made"
	mv -f "$made/apiserver.key" "$made/apiserver.crt" "$pki/"
	rm -rf "$made"
	wait_for 120 "this host's API server to show its new certificate" shows_names
	on_disk "$pki"
}

# with_names adds the names and the directory for the certificate to kubeadm's configuration.
with_names() {
	set -f # a name may be a pattern such as *.example.com
	while IFS= read -r line; do
		printf '%s\n' "$line"
		case $line in
		"kind: ClusterConfiguration") printf 'certificatesDir: %s\n' "$made" ;;
		*" certSANs:") for name in $KEEP_NAMES $ADD_NAMES; do printf '%s- "%s"\n' "${line%certSANs:}" "$name"; done ;;
		esac
	done
}

# shows_names succeeds if this host's API server answers to all $ADD_NAMES, and to none of $DROP_NAMES, unless a pattern
# of its certificate matches. It skips patterns, which cannot be requested.
shows_names() (
	set -f
	for name in $ADD_NAMES; do
		case $name in *"*"*) ;; *) answers_to "$name" || return 1 ;; esac
	done
	for name in $DROP_NAMES; do
		case " $patterns" in *" *.${name#*.} "*) continue ;; esac
		case $name in *"*"*) ;; *) answers_to localhost && ! answers_to "$name" || return 1 ;; esac
	done
)

# answers_to NAME succeeds if this host's API server presents a certificate for NAME.
answers_to() { administer --server "https://127.0.0.1:${LOCAL_ENDPOINT##*:}" --tls-server-name "$1" get --raw /readyz; }

# stage_dial makes this host's kubeconfigs use the endpoint, after it has answered to each of them.
stage_dial() {
	if [ "$ROLE" = control-plane ]; then
		for conf in admin super-admin; do redial "/etc/kubernetes/$conf.conf" "$ENDPOINT"; done
		dials /etc/kubernetes/kubelet.conf "$LOCAL_ENDPOINT" || dials /etc/kubernetes/kubelet.conf "$ENDPOINT" ||
			redial_kubelet "$LOCAL_ENDPOINT"
	else
		dials /etc/kubernetes/kubelet.conf "$ENDPOINT" || redial_kubelet "$ENDPOINT"
	fi
	systemctl is-active --quiet kubelet || systemctl start kubelet
	wait_for 120 "the kubelet's /healthz" kubelet_healthy
	keep
}

# dials KUBECONFIG URL succeeds if URL is the kubeconfig's only server.
dials() {
	[ "$(sed -n 's/^ *server: *//p' "$1" | sort -u)" = "$2" ]
}

# found KUBECONFIG URL dies unless an API server at URL presents a certificate for that name that the kubeconfig trusts.
# Call it before a change.
found() {
	(wait_for 60 "the API at $2" asked "$1" "$2") 2>/dev/null ||
		die "this host does not find the API at $2, and keeps its present endpoint:" \
			"$(asked "$1" "$2" 2>&1 | sed -n '$p')"
}

# asked KUBECONFIG URL [PATH] requests PATH, or /version, from the API as the kubeconfig's user. Workers have no
# kubectl; there it uses the kubelet's client certificate.
asked() {
	path=${3:-/version}
	if [ -x "$BIN/kubectl" ]; then
		"$BIN/kubectl" --kubeconfig "$1" --server "$2" --request-timeout 5s get --raw "$path"
	elif have curl; then
		curl -fsS --noproxy "*" --max-time 5 --cacert /etc/kubernetes/pki/ca.crt --cert "$CLIENT_CERT" "$2$path"
	elif have wget; then
		wget -nv -T 5 -t 1 -O - --no-proxy --ca-certificate /etc/kubernetes/pki/ca.crt \
			--certificate "$CLIENT_CERT" --private-key "$CLIENT_CERT" "$2$path"
	else
		die "neither curl nor wget is there to ask with: install one"
	fi
}

# redial KUBECONFIG URL makes a kubeconfig, if it exists, use URL.
redial() {
	[ -s "$1" ] && ! dials "$1" "$2" || return 0
	found "$1" "$2"
	redirect "$1" "$2"
}

# redirect KUBECONFIG URL writes the kubeconfig with another server.
redirect() {
	REDIALLED=$1 SERVER=$2
	put "$1" 0600 redialled
}

redialled() { sed "s|^\\( *server: \\).*|\\1$SERVER|" "$REDIALLED"; }

# redial_kubelet URL stops the kubelet before kubelet.conf changes. If the run is interrupted, a stopped kubelet is
# noticed; one that uses another endpoint than kubelet.conf is not. Pods keep running.
redial_kubelet() {
	found /etc/kubernetes/kubelet.conf "$1"
	systemctl stop kubelet
	redirect /etc/kubernetes/kubelet.conf "$1"
	systemctl start kubelet
}
