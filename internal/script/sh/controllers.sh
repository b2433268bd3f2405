# stage controller-files: the controllers' image into the container runtime, and the bundles from which they install.

stage_controller_files() {
	wait_for 60 "containerd" "$BIN/ctr" version
	if ! controller_image_present; then
		import_images "$CONTROLLER_INDEX" "$CONTROLLER_BLOBS"
		controller_image_present || die "the image $CONTROLLER_IMAGE is not in the runtime after its import: apply again"
	fi
	for blob in $CONTROLLER_BLOBS; do rm -f "$ARTIFACTS/sha256/${blob##*/}"; done
	name=${CONTROLLER_IMAGE%% *}
	# Without a pod that uses it, as between two versions, the kubelet would collect it.
	quiet "$BIN/ctr" -n k8s.io images label "$name" io.cri-containerd.pinned=pinned
	"$BIN/ctr" -n k8s.io images ls -q 'labels."io.cri-containerd.pinned"==pinned' 2>/dev/null | while read -r other; do
		case $other in
		"$name") ;;
		kubeone.k8c.io/*) quiet "$BIN/ctr" -n k8s.io images label "$other" io.cri-containerd.pinned= || true ;;
		esac
	done
	printf '%s\n' "$CONTROLLER_BUNDLES" | while read -r bundle size; do
		[ -n "$bundle" ] || continue
		[ "$(stat -c %s "$BUNDLES/$bundle" 2>/dev/null)" = "$size" ] || die "the bundle $bundle has not come whole: apply again"
	done || exit 1
	printf '%s\n' "$CONTROLLER_IMAGE" >"$CONTROLLER_NOTE.new"
	mv "$CONTROLLER_NOTE.new" "$CONTROLLER_NOTE"
}

controller_image_present() { images_now | grep -qxF "$CONTROLLER_IMAGE"; }
