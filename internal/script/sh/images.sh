# stage images: loads the release's images into containerd and checks their digests.
#
# Variables, set by script.go:
#
#	IMAGES       table NAME DIGEST SOURCE; SOURCE is where to pull NAME from
#	IMAGE_BLOBS  list blobs/sha256/HEX: what kubeone has uploaded, if PUSHED is yes
#	DNS_IMAGE    sha256 that stands for the manifest's repository of cluster DNS; "" if the manifest has none
#	ADDON_IMAGES sha256 that stands for the images of addons among IMAGES; "" if there are none
#	WORKLOAD_IMAGES sha256 that stands for the images among IMAGES that a bundle has for workloads; "" if there are none

stage_images() {
	wait_for 60 "containerd" "$BIN/ctr" version
	if ! (images_present) >/dev/null 2>&1; then
		if [ "$PUSHED" = yes ]; then import_images "$(file_image_index)" "$IMAGE_BLOBS"; else pull_images; fi
		images_present
	fi
	for blob in $IMAGE_BLOBS; do rm -f "$ARTIFACTS/sha256/${blob##*/}"; done
	[ -z "$WORKLOAD_IMAGES" ] || pin_images # no registry has them if the kubelet collects them
	note_images
}

# note_images records DNS_IMAGE and WORKLOAD_IMAGES among the host's digests, or removes earlier records, and records
# ADDON_IMAGES. The images of an earlier WORKLOAD_IMAGES may no longer be pinned.
note_images() {
	REPLACED="dns-image workload-images"
	NEW_DIGESTS="${DNS_IMAGE:+dns-image=$DNS_IMAGE} ${WORKLOAD_IMAGES:+workload-images=$WORKLOAD_IMAGES}"
	if [ -n "$ADDON_IMAGES" ]; then
		REPLACED="$REPLACED addon-images" NEW_DIGESTS="$NEW_DIGESTS addon-images=$ADDON_IMAGES"
	fi
	[ "$NEW_DIGESTS" != " " ] || grep -qsE '^(dns-image|workload-images) ' "$DIGESTS" || return 0
	put "$DIGESTS" 0644 digests_text
}

# images_now prints the name and digest of each image in containerd.
images_now() {
	"$BIN/ctr" -n k8s.io images ls 2>/dev/null | while read -r name _ digest _; do printf '%s %s\n' "$name" "$digest"; done
}

# images_present dies if an image of the release is missing, or has another digest.
images_present() {
	present=$(images_now)
	printf '%s\n' "$IMAGES" | while read -r name digest _; do
		[ -z "$name" ] || printf '%s\n' "$present" | grep -qxF "$name $digest" ||
			die "image $name is not in the runtime with digest $digest: apply again to upload it again"
	done || exit 1
}

# pin_images keeps the kubelet from collecting images that are not in use yet.
pin_images() {
	printf '%s\n' "$IMAGES" | while read -r name _; do
		[ -z "$name" ] || quiet "$BIN/ctr" -n k8s.io images label "$name" io.cri-containerd.pinned=pinned
	done || exit 1
}

# unpin_others lets the kubelet collect the images of other releases, but not the controllers' image.
unpin_others() {
	"$BIN/ctr" -n k8s.io images ls -q 'labels."io.cri-containerd.pinned"==pinned' 2>/dev/null | while read -r name; do
		case $name in sha256:* | kubeone.k8c.io/*) continue ;; esac
		printf '%s\n' "$IMAGES" | cut -d ' ' -f 1 | grep -qxF "$name" ||
			quiet "$BIN/ctr" -n k8s.io images label "$name" io.cri-containerd.pinned= || true
	done
}

# quiet COMMAND... discards a command's output, unless the command fails.
quiet() {
	chatter=$("$@" 2>&1) || {
		printf '%s\n' "$chatter" >&2
		return 1
	}
}

# import_images INDEX BLOBS loads uploaded blobs into containerd as one OCI image layout. INDEX is its index.json, BLOBS
# a list blobs/sha256/HEX. containerd checks every digest.
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
	# kubeone uploads only blobs that containerd lacks; the import finds the others there.
	say "importing images: $(printf '%s\n' "$sent" | wc -w) files"
	# shellcheck disable=SC2086 # a list
	tar -chf - -C "$layout" oci-layout index.json $sent | quiet "$BIN/ctr" -n k8s.io images import - ||
		die "containerd does not take the images"
	rm -rf "$layout"
}

# pull_image NAME@DIGEST pulls an image. Only containerd's CRI plugin knows registries' credentials, so crictl is used
# then.
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
