# Files that control-plane components read, beside those that kubeadm writes. The name of each contains its digest: a
# static pod always finds the content it was made with, also after its manifest is rolled back.
#
# Variables, set by script.go:
#
#	COMPONENT_FILES    table PATH SHA256 FUNCTION; FUNCTION prints the content, or is "secret" for a file in $SECRETS
#	COMPONENT_DIRS     list of the directories that components write to
#	EXEMPT_NAMESPACES  list of the namespaces that get no default node selector

# COMPONENTS is the directory of these files.
COMPONENTS=/etc/kubernetes/kubeone

# component_files writes missing files, and makes missing directories.
component_files() {
	for dir in $COMPONENT_DIRS; do
		[ -d "$dir" ] || (umask 077 && mkdir -p "$dir") || die "cannot make $dir"
	done
	printf '%s\n' "$COMPONENT_FILES" | while read -r path sum from; do
		[ -z "$path" ] || component_file "$path" "$sum" "$from"
	done || exit 1
}

# component_file PATH SHA256 FUNCTION|secret writes one file, and dies if its content does not have the digest.
component_file() {
	component_path=$1 component_sum=$2 component_prints=$3
	(umask 077 && mkdir -p "${component_path%/*}")
	if ! component_has "$component_path" "$component_sum"; then
		if [ "$component_prints" = secret ]; then
			found=$(secret "${component_path##*/}") || exit 1
			component_prints=component_secret
		fi
		put "$component_path" 0600 "$component_prints"
		component_has "$component_path" "$component_sum" ||
			die "$component_path is not what the plan says: its sha256 is not $component_sum"
	fi
	chmod 0600 "$component_path"
}

# component_secret prints the file $found.
component_secret() { cat "$found"; }

# component_has PATH SHA256 succeeds if the file exists with that content.
component_has() { [ -f "$1" ] && printf '%s  %s\n' "$2" "$1" | sha256sum -c --status - 2>/dev/null; }

# component_paths prints the paths of all such files on this host, desired or not.
component_paths() {
	for file in "$COMPONENTS"/*/*; do [ ! -f "$file" ] || printf '%s\n' "$file"; done
}

# component_leftovers removes files that no static pod uses any more. The caller has restarted the static pods without
# them.
component_leftovers() {
	component_paths | while read -r left; do
		case "
$COMPONENT_FILES" in
		*"
$left "*) ;;
		*)
			forget_files "$left"
			rm -f "$left"
			;;
		esac
	done
	rmdir "$COMPONENTS"/* "$COMPONENTS" 2>/dev/null || true
}

# exempt_namespaces annotates namespaces whose pods run on every host, so that they get no default node selector. It
# keeps a node selector that an operator has set.
exempt_namespaces() {
	for namespace in $EXEMPT_NAMESPACES; do
		administer get namespace "$namespace" -o name >/dev/null 2>&1 || continue
		told=$(administer annotate namespace "$namespace" scheduler.alpha.kubernetes.io/node-selector= 2>&1) && continue
		case $told in *already*) ;; *) die "cannot exempt namespace $namespace from default node selectors: $told" ;; esac
	done
}
