package step

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"kubeone/internal/model/desired"
	"kubeone/internal/model/observed"
)

// ControllerFiles is the kind that gives a control-plane host what the controllers need there.
const ControllerFiles Kind = "controller-files"

// ControllerFilesParams are the controllers' image, and the bundles that the host lacks.
type ControllerFilesParams struct {
	Content        // the image's parts
	Image   string `json:"image,omitempty"` // its name and its digest, with a space between
	Index   string `json:"index,omitempty"` // index.json of its layout
	// Bundles are uploaded whole, as files of these names.
	Bundles []desired.BundleFile `json:"bundles,omitempty"`
}

// Kind is ControllerFiles.
func (ControllerFilesParams) Kind() Kind { return ControllerFiles }

func (p ControllerFilesParams) variables() []Variable {
	var blobs []string
	bundles := make([][]string, 0, len(p.Bundles))
	for _, sum := range p.Uploads {
		blobs = append(blobs, "blobs/sha256/"+sum)
	}
	for _, b := range p.Bundles {
		bundles = append(bundles, []string{b.Name, fmt.Sprint(b.Size)})
	}
	return []Variable{
		Words("CONTROLLER_IMAGE", strings.Split(p.Image, " ")...), Text("CONTROLLER_INDEX", p.Index),
		Words("CONTROLLER_BLOBS", blobs...), Lines("CONTROLLER_BUNDLES", bundles),
	}
}

func controllerFilesRow() row {
	return row{
		kind: ControllerFiles, about: "the controllers' image into the container runtime, and bundles beside it",
		place: OnHost, concerns: ItsHost, group: groupImages, params: paramsOf[ControllerFilesParams](),
		effect: controllerFilesThere,
	}
}

func controllerFilesThere(w *World, h desired.Host, i Intent) {
	params, seen := ParamsOf[ControllerFilesParams](i), w.Is.Hosts[h.ID]
	bundles := maps.Clone(seen.ControllerFiles.Bundles)
	for _, b := range params.Bundles {
		if bundles == nil {
			bundles = map[string]int64{}
		}
		bundles[b.Name] = b.Size
	}
	seen.ControllerFiles = observed.ControllerFiles{Image: params.Image, Bundles: bundles}
	w.Is.Hosts[h.ID] = seen
}

// LackingBundles are those of the wanted bundles that a host does not have.
func LackingBundles(want []desired.BundleFile, has map[string]int64) []desired.BundleFile {
	return slices.DeleteFunc(slices.Clone(want), func(b desired.BundleFile) bool { return has[b.Name] == b.Size })
}
