# Files that components of the control plane read beside what kubeadm writes. Each has the digest of its content in its name: a static
# pod never finds another content than it was made with, and one that is taken back finds what it had.

COMPONENTS=/etc/kubernetes/kubeone

# component_files puts these files there, and makes the directories that components write to. What is there already stays.
component_files() {
	for dir in $COMPONENT_DIRS; do
		[ -d "$dir" ] || (umask 077 && mkdir -p "$dir") || die "cannot make $dir"
	done
	printf '%s\n' "$COMPONENT_FILES" | while read -r path sum from; do
		[ -z "$path" ] || component_file "$path" "$sum" "$from"
	done || exit 1
}

# component_file PATH SHA256 FUNCTION|secret
component_file() {
	(umask 077 && mkdir -p "${1%/*}")
	if ! component_has "$1" "$2"; then
		prints=$3
		if [ "$3" = secret ]; then
			found=$(secret "${1##*/}") || exit 1
			prints=component_secret
		fi
		put "$1" 0600 "$prints"
		component_has "$1" "$2" || die "$1 is not what the plan says: its sha256 is not $2"
	fi
	chmod 0600 "$1"
}

component_secret() { cat "$found"; }

# component_has PATH SHA256 succeeds when the file is there with that content.
component_has() { [ -f "$1" ] && printf '%s  %s\n' "$2" "$1" | sha256sum -c --status - 2>/dev/null; }

# component_paths prints the files of components that are there, wanted or not.
component_paths() {
	for file in "$COMPONENTS"/*/*; do [ ! -f "$file" ] || printf '%s\n' "$file"; done
}

# component_leftovers removes the files that no component reads any more: its static pod runs without them.
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

# exempt_namespaces has the pods of namespaces whose pods run on every host get no default node selector. Another one that somebody has
# chosen for a namespace stays.
exempt_namespaces() {
	for namespace in $EXEMPT_NAMESPACES; do
		administer get namespace "$namespace" -o name >/dev/null 2>&1 || continue
		told=$(administer annotate namespace "$namespace" scheduler.alpha.kubernetes.io/node-selector= 2>&1) && continue
		case $told in *already*) ;; *) die "cannot exempt namespace $namespace from default node selectors: $told" ;; esac
	done
}
