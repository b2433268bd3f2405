# stages rotate-learn, rotate-use, rotate-forget, learn-ca, forget-ca, renew-tokens: the keys of authorities, which are CAs and the key pair of service
# accounts. Each phase brings files that were put together for this host, and ends when all that reads them has started anew. Which
# phase has begun is noted first: until the note is gone, what runs may not have read what is there.

NEXT=/etc/kubernetes/pki/next

stage_rotate_learn() { rotate learn "$ROTATE_LEARN"; }
stage_rotate_use() { rotate use "$ROTATE_USE"; }
stage_rotate_forget() { rotate forget "$ROTATE_FORGET"; }

# authority NAME prints where an authority is below /etc/kubernetes/pki, without what tells its halves apart.
authority() {
	case $1 in
	cluster) printf 'ca\n' ;;
	etcd) printf 'etcd/ca\n' ;;
	front-proxy) printf 'front-proxy-ca\n' ;;
	service-account) printf 'sa\n' ;;
	*) die "no such authority: $1" ;;
	esac
}

# half NAME prints how the public half of an authority ends.
half() { if [ "$1" = service-account ]; then printf 'pub\n'; else printf 'crt\n'; fi; }

# rotate PHASE NAMES carries out a phase.
rotate() {
	phase=$1 names=$2
	wait_for 60 "this host's API server" readyz
	wait_for 60 "this host's etcd member" etcd_votes
	wait_for 60 "the kubelet's /healthz" kubelet_healthy
	[ "$(df -Pk /var/lib | awk 'NR == 2 { print $4 }')" -gt 65536 ] || die "less than 64 MiB are free below /var/lib: free some space, and rotate again"
	brought=/etc/kubernetes/pki.kubeone
	unpack_brought
	put "$ROTATION" 0644 rotation_begun
	on_disk "${ROTATION%/*}"
	place_brought
	case " $names " in *" cluster "*) one_signs ;; esac
	[ "$phase" != use ] || for name in $names; do sign_anew "$name"; done
	systemctl stop kubelet
	case " $names " in *" cluster "*) cluster_cas_known ;; esac
	# shellcheck disable=SC2046 # a list
	pods_anew $(readers)
	await_api_server 120
	if [ "$phase" = use ]; then forget_next; fi
	keep
	if [ -n "$(rotation_after)" ]; then put "$ROTATION" 0644 rotation_after; else rm -f "$ROTATION"; fi
	on_disk "${ROTATION%/*}"
}

# unpack_brought unpacks what was brought, beside where it belongs, if it is what the phase has and nothing else.
unpack_brought() {
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
		rm -rf "$brought"
		mkdir -p "$brought"
		tar -xf "$archive" -C "$brought" --no-same-owner
	)
	for file in $wanted; do
		if [ ! -s "$brought/$file" ] || [ -L "$brought/$file" ]; then die "$archive is not what the plan says"; fi
	done
	on_disk "$brought"
}

flat() { printf '%s\n' "$1" | tr / -; }

# rotation_begun prints the notes of phases that have begun on this host, with those that begin now.
rotation_begun() {
	rotation_ended
	for name in $names; do printf '%s %s\n' "$name" "$phase"; done
}

# rotation_ended prints the notes without those of the authorities that are in this phase.
rotation_ended() {
	[ -f "$ROTATION" ] || return 0
	while read -r name begun; do
		case " $names " in *" $name "*) ;; *) printf '%s %s\n' "$name" "$begun" ;; esac
	done <"$ROTATION"
}

# rotation_after prints the notes as they are when the phase has ended: who signs with a new key has the one before still to drop.
rotation_after() {
	rotation_ended
	[ "$phase" = use ] || return 0
	for name in $names; do printf '%s used\n' "$name"; done
}

# place_brought puts the files where components read them, each in one rename, keys first: nobody signs with what is half there, as
# the note of the phase stands.
place_brought() {
	(
		umask 077
		mkdir -p "$NEXT"
	)
	chmod 0700 "$NEXT"
	for file in "$brought"/next/*.* "$brought"/*.key "$brought"/etcd/*.key "$brought"/*.* "$brought"/etcd/*.*; do
		[ -f "$file" ] || continue
		case $file in *.key) chmod 0600 "$file" ;; *) chmod 0644 "$file" ;; esac
		mv -f "$file" "/etc/kubernetes/pki/${file#"$brought"/}"
	done
	rm -rf "$brought"
	rmdir "$NEXT" 2>/dev/null || true
	on_disk /etc/kubernetes/pki
}

# sign_anew NAME makes anew what an authority has signed on this host.
sign_anew() {
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

# readers prints the static pods that read what is new when they start.
readers() {
	case " $names " in *" etcd "*) printf 'etcd\n' ;; esac
	printf 'kube-apiserver\n'
	case " $names " in *" service-account "* | *" cluster "*) printf 'kube-controller-manager\n' ;; esac
	case " $names " in *" cluster "*) printf 'kube-scheduler\n' ;; esac
}

SUCCESSION=ca-succession.crt
SIGNING=/etc/kubernetes/pki/ca-signing.crt
SIGNING_PATCH=/etc/kubeone/patches/kube-controller-managersigning+json.yaml

# one_signs has the controller manager sign with the first of the cluster's CAs: it takes no file with several, which ca.crt is while
# the CA is rotated. A patch of kubeadm's sees to it, so that every manifest says so that is written here meanwhile.
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

# cluster_cas_known has all kubeconfigs of this host trust what ca.crt has, and the controller manager's manifest name what it signs with.
cluster_cas_known() {
	trust_in_kubeconfigs all_cas
	write_manifest kube-controller-manager
	[ -f "$SIGNING_PATCH" ] || rm -f "$SIGNING"
}

stage_learn_ca() { trust_brought; }
stage_forget_ca() { trust_brought; }

# trust_brought has a worker's kubelet trust the CAs that were brought. What API servers show is among them before and after.
trust_brought() {
	archive=$(secret authorities.tar)
	[ "$(tar -tf "$archive")" = ca.crt ] || die "$archive is not what the plan says"
	wait_for 60 "the kubelet's /healthz" kubelet_healthy
	beat=$(ready_beat)
	put /etc/kubernetes/pki/ca.crt 0644 brought_ca
	trust_in_kubeconfigs all_cas
	on_disk /etc/kubernetes
	restart_kubelet
	wait_for 120 "Node $NODE_NAME to be Ready" ready_since "$beat"
	keep
}

brought_ca() { tar -xOf "$archive" ca.crt; }

# forget_next removes the keys that sign by now from where they waited for that.
forget_next() {
	for name in $names; do
		file=$(flat "$(authority "$name")")
		rm -f "$NEXT/$file.key" "$NEXT/$file.$(half "$name")"
	done
	rmdir "$NEXT" 2>/dev/null || true
}

# halves_agree ends the exchange of a key that was cut off between its two halves: whatever kubeadm would sign next would be by one, and
# in the name of the other.
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

# stage_renew_tokens has the kubelet, and the controller manager of a control-plane host, ask for new tokens, and waits until no pod
# here has one of a key that is about to be trusted no more, and until clients, which read their token once a minute, have read it.
stage_renew_tokens() {
	dropped=$(cat "$(secret token-keys)")
	case $dropped in *[!0-9A-Za-z_[:space:]-]*) die "$SECRETS/token-keys is not what it should be" ;; esac
	beat=$(ready_beat)
	if [ "$ROLE" = control-plane ]; then
		systemctl stop kubelet
		pods_anew kube-controller-manager
	else
		restart_kubelet
	fi
	wait_for 120 "Node $NODE_NAME to be Ready" ready_since "$beat"
	wait_for 300 "pods to have new tokens" tokens_new
	newest=0
	each_token newest_token
	wait_for 120 "clients in pods to read their new tokens" passed $((newest + 75))
}

passed() { [ "$(date +%s)" -ge "$1" ]; }

PODS=/var/lib/kubelet/pods

# each_token COMMAND calls the command with the path of each file of a pod that may be a token; it ends where one fails.
each_token() {
	for token in "$PODS"/*/volumes/kubernetes.io~projected/*/*; do
		[ ! -f "$token" ] || "$1" "$token" || return 1
	done
}

newest_token() {
	made=$(stat -L -c %Y "$1" 2>/dev/null) || return 0
	[ "$made" -le "$newest" ] || newest=$made
}

tokens_new() { each_token token_new; }

# token_new FILE succeeds where the file is no token, or is one that another key than those that are dropped has signed.
token_new() {
	text=
	read -r text 2>/dev/null <"$1" || :
	case $text in eyJ*.*.*) ;; *) return 0 ;; esac
	header=$(printf '%s==' "${text%%.*}" | tr '_-' '/+' | base64 -d 2>/dev/null | tr -d '\0') || :
	for key in $dropped; do
		case $header in *"\"kid\":\"$key\""*) return 1 ;; esac
	done
}
