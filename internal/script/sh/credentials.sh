# Credentials for registries and proxies, in files that only root reads. containerd reads them when it starts.
#
# Variables, set by script.go; none of them is secret:
#
#	CREDENTIALS       list of the kinds that kubeone manages: proxy, registries. Files of other kinds stay as they are.
#	CREDENTIAL_FILES  list of the files that this host is to have
#	CREDENTIALS_DIR   directory of registries' credentials
#	PROXY_FILE        file with the proxy's credentials

# credential_files writes the files that kubeone has uploaded, and removes obsolete ones of the kinds that kubeone
# manages.
credential_files() {
	DIRTY=$RUNTIME_DIRTY
	remove_credentials
	[ -z "$CREDENTIAL_FILES" ] || write_credentials
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

write_credentials() {
	if [ ! -f "$SECRETS/credentials.tar" ]; then
		say "warning: the credentials were not uploaded to this host; kubeone apply uploads them"
		return 0
	fi
	for UPLOADED in $CREDENTIAL_FILES; do put "$UPLOADED" 0600 credential_text; done
}

# credential_text prints the uploaded content of the file UPLOADED.
credential_text() { tar -xOf "$SECRETS/credentials.tar" "${UPLOADED##*/}"; }

# credential_paths prints the paths of this host's files with credentials.
credential_paths() {
	for file in "$CREDENTIALS_DIR"/kubeone-registry-*.toml "$PROXY_FILE"; do
		[ ! -f "$file" ] || printf '%s\n' "$file"
	done
}

# other_credentials succeeds if one of these files differs from its copy in $BEFORE.
other_credentials() {
	for file in $(credential_paths) "$BEFORE/files$CREDENTIALS_DIR"/kubeone-registry-*.toml "$BEFORE/files$PROXY_FILE"; do
		! is_another "${file#"$BEFORE/files"}" || return 0
	done
	return 1
}
