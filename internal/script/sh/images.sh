# stage images: the release's images into the container runtime, each checked against its digest.

stage_images() {
	wait_for 60 "containerd" "$BIN/ctr" version
	if [ "$PUSHED" = yes ]; then import_images; else pull_images; fi
	present=$("$BIN/ctr" -n k8s.io images ls 2>/dev/null | while read -r name _ digest _; do printf '%s %s\n' "$name" "$digest"; done)
	printf '%s\n' "$IMAGES" | while read -r name digest _; do
		[ -z "$name" ] || printf '%s\n' "$present" | grep -qxF "$name $digest" || die "image $name is not in the runtime with digest $digest"
	done || exit 1
}

# quiet COMMAND... keeps a command's chatter to itself, unless it fails.
quiet() {
	chatter=$("$@" 2>&1) || {
		printf '%s\n' "$chatter" >&2
		return 1
	}
}

# import_images feeds the uploaded blobs to containerd as one image layout; containerd checks every digest itself.
import_images() {
	layout=$ARTIFACTS/layout
	mkdir -p "$layout/blobs"
	printf '{"imageLayoutVersion":"1.0.0"}\n' >"$layout/oci-layout"
	file_image_index >"$layout/index.json"
	ln -sfn "$ARTIFACTS/sha256" "$layout/blobs/sha256"
	say "importing $(printf '%s\n' "$IMAGES" | grep -c .) images"
	# shellcheck disable=SC2086 # a list
	tar -chf - -C "$layout" oci-layout index.json $IMAGE_BLOBS | quiet "$BIN/ctr" -n k8s.io images import - ||
		die "containerd does not take the images"
	for blob in $IMAGE_BLOBS; do rm -f "$layout/$blob"; done
	rm -rf "$layout"
}

pull_images() {
	printf '%s\n' "$IMAGES" | while read -r name digest source; do
		[ -n "$name" ] || continue
		say "pulling $source"
		quiet with_proxy "$BIN/ctr" -n k8s.io images pull --hosts-dir /etc/containerd/certs.d "${source%:*}@$digest" || die "cannot pull $source@$digest"
		quiet "$BIN/ctr" -n k8s.io images tag --force "${source%:*}@$digest" "$name"
	done || exit 1
}
