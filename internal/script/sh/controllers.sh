# stage controller-files: loads the controllers' image into containerd, and checks the bundles that they install from.
#
# Variables, set by ControllerFilesParams in internal/plan/step/cluster.go:
#
#	CONTROLLER_IMAGE    NAME DIGEST
#	CONTROLLER_INDEX    index.json of the image's OCI layout
#	CONTROLLER_BLOBS    list blobs/sha256/HEX: what kubeone has uploaded
#	CONTROLLER_BUNDLES  table NAME SIZE(bytes) of files in $BUNDLES
#	CONTROLLER_NOTE     path of the file that records CONTROLLER_IMAGE; set by script.go

stage_controller_files() {
	wait_for 60 "containerd" "$BIN/ctr" version
	if ! controller_image_present; then
		import_images "$CONTROLLER_INDEX" "$CONTROLLER_BLOBS"
		controller_image_present || die "the image $CONTROLLER_IMAGE is not in the runtime after its import: apply again"
	fi
	for blob in $CONTROLLER_BLOBS; do rm -f "$ARTIFACTS/sha256/${blob##*/}"; done
	name=${CONTROLLER_IMAGE%% *}
	# While no pod uses the image, as between two versions, the kubelet would collect it.
	quiet "$BIN/ctr" -n k8s.io images label "$name" io.cri-containerd.pinned=pinned
	"$BIN/ctr" -n k8s.io images ls -q 'labels."io.cri-containerd.pinned"==pinned' 2>/dev/null | while read -r other; do
		case $other in
		"$name") ;;
		kubeone.k8c.io/*) quiet "$BIN/ctr" -n k8s.io images label "$other" io.cri-containerd.pinned= || true ;;
		esac
	done
	printf '%s\n' "$CONTROLLER_BUNDLES" | while read -r bundle size; do
		[ -n "$bundle" ] || continue
		[ "$(stat -c %s "$BUNDLES/$bundle" 2>/dev/null)" = "$size" ] ||
			die "the upload of bundle $bundle is incomplete: apply again"
	done || exit 1
	printf '%s\n' "$CONTROLLER_IMAGE" >"$CONTROLLER_NOTE.new"
	mv "$CONTROLLER_NOTE.new" "$CONTROLLER_NOTE"
}

controller_image_present() { images_now | grep -qxF "$CONTROLLER_IMAGE"; }
