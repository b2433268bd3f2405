# stage images: the release's images into the container runtime, each checked against its digest.

stage_images() {
	wait_for 60 "containerd" "$BIN/ctr" version
	if [ "$PUSHED" = yes ]; then import_images; else pull_images; fi
	present=$("$BIN/ctr" -n k8s.io images ls | while read -r name _ digest _; do printf '%s %s\n' "$name" "$digest"; done)
	printf '%s\n' "$IMAGES" | while read -r name digest _; do
		[ -z "$name" ] || printf '%s\n' "$present" | grep -qxF "$name $digest" || die "image $name is not in the runtime with digest $digest"
	done || exit 1
	pin_images
}

# pin_images keeps the kubelet's garbage collection away from what the next step needs.
pin_images() {
	printf '%s\n' "$IMAGES" | while read -r name _; do
		[ -z "$name" ] || "$BIN/ctr" -n k8s.io images label "$name" io.cri-containerd.pinned=pinned >/dev/null
	done
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
	tar -chf - -C "$layout" oci-layout index.json $IMAGE_BLOBS | "$BIN/ctr" -n k8s.io images import - >/dev/null ||
		die "containerd does not take the images"
	for blob in $IMAGE_BLOBS; do rm -f "$layout/$blob"; done
	rm -rf "$layout"
}

pull_images() {
	printf '%s\n' "$IMAGES" | while read -r name digest source; do
		[ -n "$name" ] || continue
		say "pulling $source"
		"$BIN/ctr" -n k8s.io images pull --hosts-dir /etc/containerd/certs.d "${source%:*}@$digest" >/dev/null || die "cannot pull $source@$digest"
		"$BIN/ctr" -n k8s.io images tag --force "${source%:*}@$digest" "$name" >/dev/null
	done || exit 1
}
