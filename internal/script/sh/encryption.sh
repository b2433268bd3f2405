# stages encrypt-learn, encrypt-use, encrypt-forget, encrypt-give, check-secrets: the keys that this host's API server
# encrypts Secrets in etcd with.
#
# The API server's configuration is a file that is named after its digest and never changes, so its command line says
# what it has read. A kubeadm patch adds the file to every manifest of the API server that is written on this host;
# writers of manifests need not know about encryption. Without the file, such an API server does not start.
#
# Variables, set by EncryptParams and CheckSecretsParams in internal/plan/step/rotation.go:
#
#	ENCRYPT_LEARN, ENCRYPT_USE, ENCRYPT_FORGET, ENCRYPT_GIVE
#	           list of the providers in $SECRETS/encryption.yaml, the one that encrypts first; "" for no configuration
#	phase, providers, next
#	           set by encrypt for the functions that it calls: learn, use, forget or give; that list; the digest of the
#	           new configuration, "" for none
#	STORED_BY  the only provider that stored Secrets may be encrypted with

ENCRYPTION_DIR=/etc/kubernetes/encryption
ENCRYPTION_PATCH=/etc/kubeone/patches/kube-apiserverencryption+json.yaml

stage_encrypt_learn() { encrypt learn "$ENCRYPT_LEARN"; }
stage_encrypt_use() { encrypt use "$ENCRYPT_USE"; }
stage_encrypt_forget() { encrypt forget "$ENCRYPT_FORGET"; }
stage_encrypt_give() { encrypt give "$ENCRYPT_GIVE"; }

# encrypt PHASE PROVIDERS restarts the API server with another configuration. PHASE is learn, use, forget or give. The
# new configuration must be able to read everything that etcd stores.
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
	[ "$(df -Pk /var/lib | awk 'NR == 2 { print $4 }')" -gt 65536 ] ||
		die "less than 64 MiB are free below /var/lib: free some space and apply again"
	next=
	[ -z "$providers" ] || keep_configuration
	if etcd_votes >/dev/null 2>&1; then
		secrets_readable "${providers:-identity}" local_ctl
	elif [ "$phase" != give ]; then
		die "this host's etcd member does not answer, so it is unknown which keys encrypt the stored Secrets"
	fi
	keep_settings
	put "$UPGRADING" 0644 upgrade_text
	ENCRYPTING=yes # never_blind need not check again
	set +e         # and not "( ... ) || status=...": in a condition, set -e has no effect in the subshell
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

# keep_configuration copies the uploaded configuration to where the API server reads it, and sets next to its digest.
keep_configuration() {
	sum=$(sha256sum <"$(secret encryption.yaml)")
	next=${sum%% *}
	# shellcheck disable=SC2086 # a list
	[ "$(providers_of "$SECRETS/encryption.yaml")" = "$(printf '%s\n' $providers)" ] ||
		die "$SECRETS/encryption.yaml is not what the plan says"
	(
		umask 077
		mkdir -p "$ENCRYPTION_DIR"
	)
	chmod 0700 "$ENCRYPTION_DIR"
	put "$ENCRYPTION_DIR/$next.yaml" 0600 encryption_config
	on_disk "$ENCRYPTION_DIR"
}

# copy_encryption installs the uploaded configuration on a host that joins or begins a cluster, if there is one.
# Otherwise it removes the patch of an earlier attempt.
copy_encryption() {
	if [ ! -f "$SECRETS/encryption.yaml" ]; then
		rm -f "$ENCRYPTION_PATCH"
		return 0
	fi
	providers=$(providers_of "$SECRETS/encryption.yaml" | tr '\n' ' ')
	keep_configuration
	put "$ENCRYPTION_PATCH" 0644 encryption_patch
}

# providers_of FILE prints the names of a configuration's providers, one a line, the one that encrypts first.
providers_of() { sed -n -e 's/^  - identity: .*/identity/p' -e 's/^ *- name: //p' "$1"; }

# encryption_patch prints the kubeadm patch: it passes the configuration to the API server and mounts its directory.
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

# change_encryption writes the patch and the manifest, and waits until an API server with the new configuration is
# ready.
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

# runs_by_next succeeds if all API servers that run on this host were started with the new configuration.
runs_by_next() { [ "$(running_configurations)" = "${next:-none}" ]; }

# running_configurations prints the digests of the configurations that running API servers of this host use, or "none".
# It skips API servers in other network namespaces: their pods belong to clusters that this cluster hosts.
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

# forget_configurations removes the files that no API server of this host uses any more.
forget_configurations() {
	for file in "$ENCRYPTION_DIR"/*.yaml; do
		case $file in "$ENCRYPTION_DIR/$next.yaml") ;; *) rm -f "$file" ;; esac
	done
	[ -n "$next" ] || rm -rf "$ENCRYPTION_DIR"
}

# patched prints the path of the configuration in the patch; nothing if there is no patch.
patched() { sed -n 's/^ *value: --encryption-provider-config=//p' "$ENCRYPTION_PATCH" 2>/dev/null || true; }

# manifest_agrees succeeds if the API server's manifest and the patch name the same configuration of kubeone's, or none.
manifest_agrees() {
	[ "$(sed -n "s|^ *- --encryption-provider-config=\\($ENCRYPTION_DIR/.*\\)|\\1|p" \
		/etc/kubernetes/manifests/kube-apiserver.yaml)" = "$(patched)" ]
}

# configured prints the providers that the next API server of this host can read Secrets with, one a line. It dies if
# the configuration is missing: that API server would not start.
configured() {
	file=$(patched)
	if [ -z "$file" ]; then
		printf 'identity\n'
		return 0
	fi
	sum=${file##*/}
	[ "$(sha256sum 2>/dev/null <"$file")" = "${sum%.yaml}  -" ] ||
		die "the keys that encrypt Secrets are missing on this host ($file):" \
			"apply again, which copies them from another control-plane host"
	providers_of "$file"
}

# never_blind COMMAND... dies if the next API server of this host could not read the Secrets in etcd. COMMAND is
# etcdctl. It does not check a configuration that the manifest passes: the operator is responsible for that.
never_blind() {
	[ "${ENCRYPTING:-no}" = no ] || return 0
	names=$(configured) || exit 1
	if [ "$names" = identity ] && {
		file_cluster
		cat /etc/kubeone/patches/kube-apiserver* 2>/dev/null || true
	} | grep -q encryption-provider-config; then return 0; fi
	secrets_readable "$(printf '%s' "$names" | tr '\n' ' ')" "$@"
}

# secrets_readable NAMES COMMAND... dies if etcd stores Secrets of a provider that is not in the list NAMES.
secrets_readable() {
	known=$1
	shift
	stored=$(stored_by "$@") || die "etcd does not tell which keys encrypt the stored Secrets"
	for name in $stored; do
		case " $known " in
		*" $name "*) ;;
		*)
			die "Secrets in etcd are stored by $name, and the API server would know only ${known% }:" \
				"it could not read them"
			;;
		esac
	done
}

# stage check-secrets: dies unless all Secrets in etcd are encrypted with STORED_BY. It reads them from etcd itself.
stage_check_secrets() {
	wait_for 60 "this host's etcd member" etcd_votes
	stored=$(stored_by local_ctl) || die "etcd does not tell which keys encrypt the stored Secrets"
	for name in $stored; do
		[ "$name" = "$STORED_BY" ] ||
			die "Secrets in etcd are still stored by $name," \
				"which must not be dropped before they are written again: apply again"
	done
	say "all Secrets in etcd are stored by $STORED_BY"
}

# local_ctl ARGUMENT... runs etcdctl against this host's member.
local_ctl() {
	pki=/etc/kubernetes/pki/etcd
	etcd=$(etcd_container)
	[ -n "$etcd" ] || return 1
	in_etcd etcdctl --endpoints https://127.0.0.1:2379 --command-timeout 60s --cacert $pki/ca.crt \
		--cert $pki/server.crt --key $pki/server.key "$@"
}

# PAGE is the number of Secrets that one request reads.
PAGE=500

# registry prints the prefix of the API server's keys in etcd. Like the API server, it uses the last --etcd-prefix, and
# adds a leading slash.
registry() {
	prefix=$(sed -n 's/^ *- --etcd-prefix=//p' /etc/kubernetes/manifests/kube-apiserver.yaml 2>/dev/null | sed -n '$p')
	prefix=$(printf '%s\n' "$prefix" | tr -s /)
	prefix=/${prefix#/}
	prefix=${prefix%/}
	printf '%s\n' "${prefix:-/registry}"
}

# stored_by COMMAND... prints the providers of the Secrets in etcd, each once; identity stands for no encryption.
# COMMAND is etcdctl, called for one page at a time. Only the first bytes of each value are examined, and none of them
# are printed.
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

# first_bytes reads etcdctl's JSON with a key and its value on each line. It prints "by NAME" for each provider, and
# "next KEY", in base64, if there may be more. It fails if the input is not an answer of etcdctl.
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
