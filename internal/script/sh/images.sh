# stage images: the release's images into the container runtime, each checked against its digest.

stage_images() {
	wait_for 60 "containerd" "$BIN/ctr" version
	if ! (images_present) >/dev/null 2>&1; then
		if [ "$PUSHED" = yes ]; then import_images "$(file_image_index)" "$IMAGE_BLOBS"; else pull_images; fi
		images_present
	fi
	for blob in $IMAGE_BLOBS; do rm -f "$ARTIFACTS/sha256/${blob##*/}"; done
	note_dns_image
}

# note_dns_image notes where the image of cluster DNS is, by its name on this host, if the manifest says so; else it
# forgets what it has noted before.
note_dns_image() {
	[ -n "$DNS_IMAGE" ] || grep -qs '^dns-image ' "$DIGESTS" || return 0
	REPLACED=dns-image NEW_DIGESTS=${DNS_IMAGE:+dns-image=$DNS_IMAGE}
	put "$DIGESTS" 0644 digests_text
}

# images_now prints name and digest of every image in the runtime.
images_now() {
	"$BIN/ctr" -n k8s.io images ls 2>/dev/null | while read -r name _ digest _; do printf '%s %s\n' "$name" "$digest"; done
}

# images_present dies when an image of the release is missing, or is another than the release's.
images_present() {
	present=$(images_now)
	printf '%s\n' "$IMAGES" | while read -r name digest _; do
		[ -z "$name" ] || printf '%s\n' "$present" | grep -qxF "$name $digest" || die "image $name is not in the runtime with digest $digest: apply again, it is brought again"
	done || exit 1
}

# pin_images keeps the kubelet from collecting images that nothing uses yet.
pin_images() {
	printf '%s\n' "$IMAGES" | while read -r name _; do
		[ -z "$name" ] || quiet "$BIN/ctr" -n k8s.io images label "$name" io.cri-containerd.pinned=pinned
	done || exit 1
}

# unpin_others leaves the images of other releases to the kubelet. The controllers' is of no release.
unpin_others() {
	"$BIN/ctr" -n k8s.io images ls -q 'labels."io.cri-containerd.pinned"==pinned' 2>/dev/null | while read -r name; do
		case $name in sha256:* | kubeone.k8c.io/*) continue ;; esac
		printf '%s\n' "$IMAGES" | cut -d ' ' -f 1 | grep -qxF "$name" ||
			quiet "$BIN/ctr" -n k8s.io images label "$name" io.cri-containerd.pinned= || true
	done
}

# quiet COMMAND... keeps a command's chatter to itself, unless it fails.
quiet() {
	chatter=$("$@" 2>&1) || {
		printf '%s\n' "$chatter" >&2
		return 1
	}
}

# import_images INDEX BLOBS feeds the uploaded blobs to containerd as one image layout; containerd checks every digest
# itself.
import_images() {
	layout=$ARTIFACTS/layout
	mkdir -p "$layout/blobs"
	printf '{"imageLayoutVersion":"1.0.0"}\n' >"$layout/oci-layout"
	printf '%s' "$1" >"$layout/index.json"
	ln -sfn "$ARTIFACTS/sha256" "$layout/blobs/sha256"
	sent=
	for blob in $2; do
		[ ! -f "$layout/$blob" ] || sent="$sent $blob"
	done
	# What the runtime has already was not sent: an import finds it there.
	say "importing images: $(printf '%s\n' "$sent" | wc -w) files"
	# shellcheck disable=SC2086 # a list
	tar -chf - -C "$layout" oci-layout index.json $sent | quiet "$BIN/ctr" -n k8s.io images import - ||
		die "containerd does not take the images"
	rm -rf "$layout"
}

# pull_image NAME@DIGEST has containerd pull an image. What knows credentials is the part of it that serves the kubelet.
pull_image() {
	case "$(credential_paths)" in
	*/kubeone-registry-*) "$BIN/crictl" pull "$1" ;;
	*) with_proxy "$BIN/ctr" -n k8s.io images pull --hosts-dir /etc/containerd/certs.d "$1" ;;
	esac
}

pull_images() {
	present=$(images_now)
	printf '%s\n' "$IMAGES" | while read -r name digest source; do
		[ -n "$name" ] || continue
		! printf '%s\n' "$present" | grep -qxF "$name $digest" || continue
		say "pulling $source"
		quiet pull_image "${source%:*}@$digest" || die "cannot pull $source@$digest"
		quiet "$BIN/ctr" -n k8s.io images tag --force "${source%:*}@$digest" "$name"
	done || exit 1
}
