# stages encrypt-learn, encrypt-use, encrypt-forget, encrypt-give, check-secrets: by which keys this host's API server stores Secrets in etcd. Its configuration is a file that is named
# after its digest and never changes: what an API server was told on its command line is what it has read. A patch of kubeadm's,
# which names the file, has every manifest of the API server that is written here name it too; whoever writes one needs to know
# nothing of this. Without the file such an API server does not start.

ENCRYPTION_DIR=/etc/kubernetes/encryption
ENCRYPTION_PATCH=/etc/kubeone/patches/kube-apiserverencryption+json.yaml

stage_encrypt_learn() { encrypt learn "$ENCRYPT_LEARN"; }
stage_encrypt_use() { encrypt use "$ENCRYPT_USE"; }
stage_encrypt_forget() { encrypt forget "$ENCRYPT_FORGET"; }
stage_encrypt_give() { encrypt give "$ENCRYPT_GIVE"; }

# encrypt PHASE PROVIDERS starts the API server with another configuration, in the place where only root reads it. It is never told anything
# with which it could not read what etcd has.
encrypt() {
	phase=$1 providers=$2
	if [ "$phase" = give ]; then
		systemctl is-active --quiet containerd || systemctl start containerd
	else
		DISCARD_EDITS=
		static_pods_ours
		wait_for 60 "this host's API server" readyz
		wait_for 60 "this host's etcd member" etcd_votes
		wait_for 60 "the kubelet's /healthz" kubelet_healthy
	fi
	[ "$(df -Pk /var/lib | awk 'NR == 2 { print $4 }')" -gt 65536 ] || die "less than 64 MiB are free below /var/lib: free some space and apply again"
	next=
	[ -z "$providers" ] || keep_configuration
	if etcd_votes >/dev/null 2>&1; then
		secrets_readable "${providers:-identity}" local_ctl
	elif [ "$phase" != give ]; then
		die "this host's etcd member does not answer, so that nobody knows by which keys Secrets are stored"
	fi
	keep_settings
	put "$UPGRADING" 0644 upgrade_text
	ENCRYPTING=yes # and what never_blind is for has been seen to
	set +e         # in a condition, the shell would go on after what fails
	(
		set -e
		change_encryption
	) 2>"$BEFORE/errors"
	status=$?
	set -e
	cat "$BEFORE/errors" >&2
	[ "$status" = 0 ] || refused "$(last_error)"
	forget_configurations
	keep
	rm -f "$UPGRADING"
	rm -rf "$BEFORE"
}

encryption_config() { cat "$SECRETS/encryption.yaml"; }

# keep_configuration puts the configuration that was brought where API servers look for it: next is its digest then.
keep_configuration() {
	sum=$(sha256sum <"$(secret encryption.yaml)")
	next=${sum%% *}
	# shellcheck disable=SC2086 # a list
	[ "$(providers_of "$SECRETS/encryption.yaml")" = "$(printf '%s\n' $providers)" ] || die "$SECRETS/encryption.yaml is not what the plan says"
	(
		umask 077
		mkdir -p "$ENCRYPTION_DIR"
	)
	chmod 0700 "$ENCRYPTION_DIR"
	put "$ENCRYPTION_DIR/$next.yaml" 0600 encryption_config
	on_disk "$ENCRYPTION_DIR"
}

# copy_encryption gives a host that joins, or begins a cluster, what was brought for it, if anything was. What it had is of an earlier
# attempt.
copy_encryption() {
	if [ ! -f "$SECRETS/encryption.yaml" ]; then
		rm -f "$ENCRYPTION_PATCH"
		return 0
	fi
	providers=$(providers_of "$SECRETS/encryption.yaml" | tr '\n' ' ')
	keep_configuration
	put "$ENCRYPTION_PATCH" 0644 encryption_patch
}

# providers_of FILE prints the names of a configuration's providers, the one that writes first, one a line.
providers_of() { sed -n -e 's/^  - identity: .*/identity/p' -e 's/^ *- name: //p' "$1"; }

# encryption_patch has kubeadm tell the API server where its configuration is, and show it the directory.
encryption_patch() {
	cat <<-END
		- op: add
		  path: /spec/containers/0/command/-
		  value: --encryption-provider-config=$ENCRYPTION_DIR/$next.yaml
		- op: add
		  path: /spec/containers/0/volumeMounts/-
		  value:
		    mountPath: $ENCRYPTION_DIR
		    name: kubeone-encryption
		    readOnly: true
		- op: add
		  path: /spec/volumes/-
		  value:
		    hostPath:
		      path: $ENCRYPTION_DIR
		      type: Directory
		    name: kubeone-encryption
	END
}

# change_encryption writes the patch and the manifest, and waits for the API server that has read the new configuration.
change_encryption() {
	if [ -n "$next" ]; then
		put "$ENCRYPTION_PATCH" 0644 encryption_patch
	else
		rm -f "$ENCRYPTION_PATCH"
	fi
	on_disk /etc/kubeone/patches
	change_pods kube-apiserver
	wait_for_pods kube-apiserver 120 "this host's API server with these keys" runs_by_next
	await_api_server 120
}

# runs_by_next succeeds when the API server that runs was started with the new configuration, and no other one is left.
runs_by_next() { [ "$(running_configurations)" = "${next:-none}" ]; }

# running_configurations prints the digests of the configurations with which API servers of this host run: "none" for one that has
# none. Those of pods that this cluster hosts for another one have their own networks.
running_configurations() {
	ours=$(readlink /proc/self/ns/net)
	for process in /proc/[0-9]*; do
		name=
		{ read -r name <"$process/comm"; } 2>/dev/null || continue
		[ "$name" = kube-apiserver ] || continue
		[ "$(readlink "$process/ns/net" 2>/dev/null)" = "$ours" ] || continue
		path=$(tr '\0' '\n' <"$process/cmdline" 2>/dev/null | sed -n 's/^--encryption-provider-config=//p')
		path=${path##*/}
		printf '%s\n' "${path:-none}"
	done | sed 's/\.yaml$//' | sort -u
}

# forget_configurations removes those that no API server here has or gets.
forget_configurations() {
	for file in "$ENCRYPTION_DIR"/*.yaml; do
		case $file in "$ENCRYPTION_DIR/$next.yaml") ;; *) rm -f "$file" ;; esac
	done
	[ -n "$next" ] || rm -rf "$ENCRYPTION_DIR"
}

# patched prints where the configuration is that the patch names; nothing where there is none.
patched() { sed -n 's/^ *value: --encryption-provider-config=//p' "$ENCRYPTION_PATCH" 2>/dev/null || true; }

# manifest_agrees succeeds when the API server's manifest names the configuration that the patch names, and none of ours without one.
manifest_agrees() {
	[ "$(sed -n "s|^ *- --encryption-provider-config=\\($ENCRYPTION_DIR/.*\\)|\\1|p" /etc/kubernetes/manifests/kube-apiserver.yaml)" = "$(patched)" ]
}

# configured prints by what the API server that starts next here can read Secrets, one name a line, and fails where its configuration
# is not there: then it would not start.
configured() {
	file=$(patched)
	if [ -z "$file" ]; then
		printf 'identity\n'
		return 0
	fi
	sum=${file##*/}
	[ "$(sha256sum 2>/dev/null <"$file")" = "${sum%.yaml}  -" ] ||
		die "the keys by which Secrets are encrypted are gone from this host ($file): apply again, which brings them from another control-plane host"
	providers_of "$file"
}

# never_blind COMMAND... dies where the API server that is about to start here could not read what etcd has, which the command asks.
# Whoever encrypts by a configuration of their own sees to that themselves.
never_blind() {
	[ "${ENCRYPTING:-no}" = no ] || return 0
	names=$(configured) || exit 1
	if [ "$names" = identity ] && {
		file_cluster
		cat /etc/kubeone/patches/kube-apiserver* 2>/dev/null || true
	} | grep -q encryption-provider-config; then return 0; fi
	secrets_readable "$(printf '%s' "$names" | tr '\n' ' ')" "$@"
}

# secrets_readable NAMES COMMAND... dies where etcd has Secrets that are stored by something else.
secrets_readable() {
	known=$1
	shift
	stored=$(stored_by "$@") || die "etcd does not tell by which keys Secrets are stored"
	for name in $stored; do
		case " $known " in
		*" $name "*) ;;
		*) die "Secrets in etcd are stored by $name, and the API server would know only ${known% }: nobody could read them through it" ;;
		esac
	done
}

# stage check-secrets: all Secrets are stored by STORED_BY, by etcd's own bytes.
stage_check_secrets() {
	wait_for 60 "this host's etcd member" etcd_votes
	stored=$(stored_by local_ctl) || die "etcd does not tell by which keys Secrets are stored"
	for name in $stored; do
		[ "$name" = "$STORED_BY" ] || die "Secrets in etcd are still stored by $name, which must not be dropped before they are written again: apply again"
	done
	say "all Secrets in etcd are stored by $STORED_BY"
}

# local_ctl ARGUMENT... asks this host's member.
local_ctl() {
	pki=/etc/kubernetes/pki/etcd
	etcd=$(etcd_container)
	[ -n "$etcd" ] || return 1
	in_etcd etcdctl --endpoints https://127.0.0.1:2379 --command-timeout 60s --cacert $pki/ca.crt --cert $pki/server.crt --key $pki/server.key "$@"
}

PAGE=500

# registry prints below which key of etcd the API server of this host keeps its objects. As that does, it takes the last
# prefix that is given, as a path from the root.
registry() {
	prefix=$(sed -n 's/^ *- --etcd-prefix=//p' /etc/kubernetes/manifests/kube-apiserver.yaml 2>/dev/null | sed -n '$p')
	prefix=$(printf '%s\n' "$prefix" | tr -s /)
	prefix=/${prefix#/}
	prefix=${prefix%/}
	printf '%s\n' "${prefix:-/registry}"
}

# stored_by COMMAND... prints by what Secrets are stored, each name once: of keys, or identity. The command is etcdctl, which is asked
# for a page at a time. Only the first bytes of what it answers are looked at, and none of them goes anywhere.
stored_by() {
	prefix=$(registry)/secrets
	from=$prefix/ by=
	while [ -n "$from" ]; do
		page=$("$@" get "$from" "${prefix}0" --limit "$PAGE" -w json | tr '{' '\n' | cut -c 1-1000 | first_bytes) || return 1
		by="$by $(printf '%s\n' "$page" | sed -n 's/^by //p' | tr '\n' ' ')"
		from=$(printf '%s\n' "$page" | sed -n 's/^next //p' | base64 -d)
	done
	# shellcheck disable=SC2086 # a list
	[ -z "${by# }" ] || printf '%s\n' $by | sort -u
}

# first_bytes reads etcdctl's answer, a key and its value on each line, and prints "by NAME" for each way in which values are stored,
# and "next KEY", in base64, where there may be more. It fails where the answer is none.
first_bytes() {
	awk -v page="$PAGE" '
		function decode(s,    out, i, n, b, k) {
			for (i = 1; i + 3 <= length(s); i += 4) {
				n = 0
				for (k = 0; k < 4; k++) n = n * 64 + index(digits, substr(s, i + k, 1)) - 1
				for (k = 65536; k >= 1; k /= 256) {
					b = int(n / k) % 256
					if (b < 33 || b > 126) return out
					out = out sprintf("%c", b)
				}
			}
			return out
		}
		BEGIN { digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" }
		/"header":/ { answered = 1 }
		match($0, /"key":"[^"]*"/) {
			last = substr($0, RSTART + 7, RLENGTH - 8)
			count++
			by = "identity"
			if (match($0, /"value":"azhzOmVu[^"]*/) && split(decode(substr($0, RSTART + 9, 160)), part, ":") >= 6) by = part[5]
			seen[by] = 1
		}
		END {
			if (!answered) exit 1
			for (by in seen) print "by " by
			if (count >= page) print "next " last
		}'
}
