# Credentials for registries and proxies, in files that only root reads. containerd reads them when it starts.

# credential_files makes these files what the operator's machine has brought, and removes those that nobody wants any more. Of what it
# does not know it leaves the host what it has.
credential_files() {
	DIRTY=$RUNTIME_DIRTY
	remove_credentials
	[ -z "$CREDENTIAL_FILES" ] || bring_credentials
	DIRTY=
}

remove_credentials() {
	for file in $(credential_paths); do
		case $file in "$PROXY_FILE") kind=proxy ;; *) kind=registries ;; esac
		case " $CREDENTIALS " in *" $kind "*) ;; *) continue ;; esac
		case " $CREDENTIAL_FILES " in *" $file "*) continue ;; esac
		changed
		rm -f "$file"
	done
}

bring_credentials() {
	if [ ! -f "$SECRETS/credentials.tar" ]; then
		say "warning: the credentials were not brought to this host; kubeone apply brings them"
		return 0
	fi
	for BROUGHT in $CREDENTIAL_FILES; do put "$BROUGHT" 0600 credential_text; done
}

# credential_text prints the file BROUGHT as it was brought.
credential_text() { tar -xOf "$SECRETS/credentials.tar" "${BROUGHT##*/}"; }

# credential_paths prints the files with credentials that this host has.
credential_paths() {
	for file in "$CREDENTIALS_DIR"/kubeone-registry-*.toml "$PROXY_FILE"; do
		[ ! -f "$file" ] || printf '%s\n' "$file"
	done
}

# other_credentials succeeds when one of these files is not what it was before this step.
other_credentials() {
	for file in $(credential_paths) "$BEFORE/files$CREDENTIALS_DIR"/kubeone-registry-*.toml "$BEFORE/files$PROXY_FILE"; do
		! is_another "${file#"$BEFORE/files"}" || return 0
	done
	return 1
}
