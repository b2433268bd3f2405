# stages rotate-learn, rotate-use, rotate-forget, learn-ca, forget-ca, renew-tokens: rotate the keys of authorities.
# These are the CAs and the service-account keys. Each phase installs files that kubeone has uploaded for this host, and
# ends when everything that reads them has restarted. It first notes in $ROTATION that it has begun: while the note
# exists, running processes may not have read the files.
#
# Variables, set by RotateParams in internal/plan/step/rotation.go:
#
#	ROTATE_LEARN, ROTATE_USE, ROTATE_FORGET
#	          list of cluster, etcd, front-proxy, service-account
#	phase, names, unpacked
#	          set by rotate for the functions that it calls: learn, use or forget; that list; a directory

# NEXT is the directory of keys that do not sign yet.
NEXT=/etc/kubernetes/pki/next

stage_rotate_learn() { rotate learn "$ROTATE_LEARN"; }
stage_rotate_use() { rotate use "$ROTATE_USE"; }
stage_rotate_forget() { rotate forget "$ROTATE_FORGET"; }

# authority NAME prints the path of an authority below /etc/kubernetes/pki, without its extension.
authority() {
	case $1 in
	cluster) printf 'ca\n' ;;
	etcd) printf 'etcd/ca\n' ;;
	front-proxy) printf 'front-proxy-ca\n' ;;
	service-account) printf 'sa\n' ;;
	*) die "no such authority: $1" ;;
	esac
}

# half NAME prints the extension of an authority's public half.
half() { if [ "$1" = service-account ]; then printf 'pub\n'; else printf 'crt\n'; fi; }

# rotate PHASE NAMES carries out a phase, learn, use or forget, for a list of authorities.
rotate() {
	phase=$1 names=$2
	wait_for 60 "this host's API server" readyz
	wait_for 60 "this host's etcd member" etcd_votes
	wait_for 60 "the kubelet's /healthz" kubelet_healthy
	[ "$(df -Pk /var/lib | awk 'NR == 2 { print $4 }')" -gt 65536 ] ||
		die "less than 64 MiB are free below /var/lib: free some space, and rotate again"
	unpacked=/etc/kubernetes/pki.kubeone
	unpack_uploaded
	put "$ROTATION" 0644 rotation_begun
	on_disk "${ROTATION%/*}"
	place_uploaded
	case " $names " in *" cluster "*) one_signs ;; esac
	[ "$phase" != use ] || for name in $names; do renew_signed "$name"; done
	systemctl stop kubelet
	case " $names " in *" cluster "*) cluster_cas_known ;; esac
	# shellcheck disable=SC2046 # a list
	restart_pods $(readers)
	await_api_server 120
	if [ "$phase" = use ]; then forget_next; fi
	keep
	if [ -n "$(rotation_after)" ]; then put "$ROTATION" 0644 rotation_after; else rm -f "$ROTATION"; fi
	on_disk "${ROTATION%/*}"
}

# unpack_uploaded unpacks the uploaded files to $unpacked, and dies if they are not exactly those of the phase.
unpack_uploaded() {
	archive=$(secret authorities.tar)
	wanted=$(for name in $names; do
		file=$(authority "$name")
		printf '%s\n' "$file.$(half "$name")"
		case $phase in
		learn)
			[ "$name" != cluster ] || printf '%s\n' "$SUCCESSION"
			tar -tf "$archive" | grep -F -x -e "next/$(flat "$file").$(half "$name")" -e "next/$(flat "$file").key" || true
			;;
		use) printf '%s\n' "$file.key" ;;
		esac
	done | sort)
	[ "$(tar -tf "$archive" | sort)" = "$wanted" ] || die "$archive is not what the plan says"
	(
		umask 077
		rm -rf "$unpacked"
		mkdir -p "$unpacked"
		tar -xf "$archive" -C "$unpacked" --no-same-owner
	)
	for file in $wanted; do
		if [ ! -s "$unpacked/$file" ] || [ -L "$unpacked/$file" ]; then die "$archive is not what the plan says"; fi
	done
	on_disk "$unpacked"
}

# flat PATH prints the path with dashes for its slashes.
flat() { printf '%s\n' "$1" | tr / -; }

# rotation_begun prints the notes of the phases that have begun on this host, including this one.
rotation_begun() {
	rotation_ended
	for name in $names; do printf '%s %s\n' "$name" "$phase"; done
}

# rotation_ended prints the notes of the authorities that are not in this phase.
rotation_ended() {
	[ -f "$ROTATION" ] || return 0
	while read -r name begun; do
		case " $names " in *" $name "*) ;; *) printf '%s %s\n' "$name" "$begun" ;; esac
	done <"$ROTATION"
}

# rotation_after prints the notes for the end of the phase: after use, the former key is still to be dropped.
rotation_after() {
	rotation_ended
	[ "$phase" = use ] || return 0
	for name in $names; do printf '%s used\n' "$name"; done
}

# place_uploaded moves the uploaded files into place, each in one rename, keys first. While only half is in place, the
# note of the phase exists, and so nothing signs.
place_uploaded() {
	(
		umask 077
		mkdir -p "$NEXT"
	)
	chmod 0700 "$NEXT"
	for file in "$unpacked"/next/*.* "$unpacked"/*.key "$unpacked"/etcd/*.key "$unpacked"/*.* "$unpacked"/etcd/*.*; do
		[ -f "$file" ] || continue
		case $file in *.key) chmod 0600 "$file" ;; *) chmod 0644 "$file" ;; esac
		mv -f "$file" "/etc/kubernetes/pki/${file#"$unpacked"/}"
	done
	rm -rf "$unpacked"
	rmdir "$NEXT" 2>/dev/null || true
	on_disk /etc/kubernetes/pki
}

# renew_signed NAME renews the certificates that an authority has signed on this host.
renew_signed() {
	config=$(plain_config file_cluster_now)
	case $1 in
	cluster)
		signed_by="apiserver apiserver-kubelet-client controller-manager.conf scheduler.conf admin.conf"
		[ ! -f /etc/kubernetes/super-admin.conf ] || signed_by="$signed_by super-admin.conf"
		;;
	etcd) signed_by="etcd-server etcd-peer etcd-healthcheck-client apiserver-etcd-client" ;;
	front-proxy) signed_by=front-proxy-client ;;
	*) return 0 ;;
	esac
	for certificate in $signed_by; do kubeadm certs renew "$certificate" --config "$config"; done
}

# readers prints the static pods that must restart to read the files.
readers() {
	case " $names " in *" etcd "*) printf 'etcd\n' ;; esac
	printf 'kube-apiserver\n'
	case " $names " in *" service-account "* | *" cluster "*) printf 'kube-controller-manager\n' ;; esac
	case " $names " in *" cluster "*) printf 'kube-scheduler\n' ;; esac
}

SUCCESSION=ca-succession.crt
SIGNING=/etc/kubernetes/pki/ca-signing.crt
SIGNING_PATCH=/etc/kubeone/patches/kube-controller-managersigning+json.yaml

# one_signs makes the controller manager sign with the first of the cluster's CAs: it cannot read a file with several,
# which ca.crt is during a rotation. A kubeadm patch adds the flag to every manifest that is written here meanwhile.
one_signs() {
	if several_cas; then
		put "$SIGNING" 0644 first_ca
		put "$SIGNING_PATCH" 0644 signing_patch
	else
		rm -f "$SIGNING_PATCH"
	fi
	on_disk /etc/kubernetes/pki
	[ ! -d "${SIGNING_PATCH%/*}" ] || on_disk "${SIGNING_PATCH%/*}"
}

signing_patch() {
	cat <<-END
		- op: add
		  path: /spec/containers/0/command/-
		  value: --cluster-signing-cert-file=$SIGNING
	END
}

# cluster_cas_known updates the CAs in this host's kubeconfigs, and the signing CA in the controller manager's manifest.
cluster_cas_known() {
	trust_in_kubeconfigs all_cas
	write_manifest kube-controller-manager
	[ -f "$SIGNING_PATCH" ] || rm -f "$SIGNING"
}

stage_learn_ca() { trust_uploaded; }
stage_forget_ca() { trust_uploaded; }

# trust_uploaded makes a worker's kubelet trust the uploaded CAs. API servers present one of them before and afterwards.
trust_uploaded() {
	archive=$(secret authorities.tar)
	[ "$(tar -tf "$archive")" = ca.crt ] || die "$archive is not what the plan says"
	wait_for 60 "the kubelet's /healthz" kubelet_healthy
	beat=$(ready_beat)
	put /etc/kubernetes/pki/ca.crt 0644 uploaded_ca
	trust_in_kubeconfigs all_cas
	on_disk /etc/kubernetes
	restart_kubelet
	wait_for 120 "Node $NODE_NAME to be Ready" ready_since "$beat"
	keep
}

uploaded_ca() { tar -xOf "$archive" ca.crt; }

# forget_next removes keys from $NEXT that sign by now.
forget_next() {
	for name in $names; do
		file=$(flat "$(authority "$name")")
		rm -f "$NEXT/$file.key" "$NEXT/$file.$(half "$name")"
	done
	rmdir "$NEXT" 2>/dev/null || true
}

# halves_agree completes an exchange of keys that was interrupted between the two halves: otherwise kubeadm would sign
# with one key in the name of another.
halves_agree() {
	[ -f "$ROTATION" ] || return 0
	while read -r name begun; do
		[ "$begun" = use ] || continue
		pair=/etc/kubernetes/pki/$(authority "$name")
		given=$NEXT/$(flat "$(authority "$name")") public=$(half "$name")
		cmp -s "$given.key" "$pair.key" || continue
		case $(cat "$pair.$public") in
		"$(cat "$given.$public")"*) ;;
		*) put "$pair.$public" 0644 with_its_own ;;
		esac
		[ "$name" != cluster ] || one_signs
	done <"$ROTATION"
}

with_its_own() { cat "$given.$public" "$pair.$public"; }

# stage_renew_tokens restarts the kubelet, or the controller manager, so that they request new tokens. Then it waits
# until no pod of this host has a token signed by a key of the file token-keys, and until clients have read the new
# tokens, which they do once a minute.
stage_renew_tokens() {
	dropped=$(cat "$(secret token-keys)")
	case $dropped in *[!0-9A-Za-z_[:space:]-]*) die "$SECRETS/token-keys is not what it should be" ;; esac
	beat=$(ready_beat)
	if [ "$ROLE" = control-plane ]; then
		systemctl stop kubelet
		restart_pods kube-controller-manager
	else
		restart_kubelet
	fi
	wait_for 120 "Node $NODE_NAME to be Ready" ready_since "$beat"
	wait_for 300 "pods to have new tokens" tokens_new
	newest=0
	each_token newest_token
	wait_for 120 "clients in pods to read their new tokens" passed $((newest + 75))
}

# passed TIME succeeds once TIME, in seconds since 1970, has come.
passed() { [ "$(date +%s)" -ge "$1" ]; }

PODS=/var/lib/kubelet/pods

# each_token COMMAND calls COMMAND with the path of each file of a pod that may be a token, and stops at the first
# failure.
each_token() {
	for token in "$PODS"/*/volumes/kubernetes.io~projected/*/*; do
		[ ! -f "$token" ] || "$1" "$token" || return 1
	done
}

# newest_token FILE sets newest to the modification time of the file, if that is later.
newest_token() {
	made=$(stat -L -c %Y "$1" 2>/dev/null) || return 0
	[ "$made" -le "$newest" ] || newest=$made
}

tokens_new() { each_token token_new; }

# token_new FILE succeeds if the file is not a token, or if none of the dropped keys has signed it.
token_new() {
	text=
	read -r text 2>/dev/null <"$1" || :
	case $text in eyJ*.*.*) ;; *) return 0 ;; esac
	header=$(printf '%s==' "${text%%.*}" | tr '_-' '/+' | base64 -d 2>/dev/null | tr -d '\0') || :
	for key in $dropped; do
		case $header in *"\"kid\":\"$key\""*) return 1 ;; esac
	done
}
