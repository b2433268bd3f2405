package view

import (
	"io"
	"strconv"
)

// AddonsFormat is the version of the JSON that "addons list" prints.
const AddonsFormat = 1

// AddonsDocument is the JSON that "addons list" prints.
type AddonsDocument struct {
	Format  int           `json:"format"` // AddonsFormat
	Cluster string        `json:"cluster"`
	Addons  []AddonReport `json:"addons"`
}

// AddonReport is one addon.
type AddonReport struct {
	Name        string   `json:"name"`
	Source      string   `json:"source"`                // "kubeone", "folder" or "helm"
	State       string   `json:"state"`                 // as engine.AddonState.State
	Objects     int      `json:"objects"`               // number of objects
	Differences []string `json:"differences,omitempty"` // objects that were changed or deleted
	Problem     string   `json:"problem,omitempty"`     // why the objects could not be compared or listed
}

// Print prints a table, and below it what differs.
func (d AddonsDocument) Print(w io.Writer) error {
	out := &page{}
	t := &table{head: []string{"ADDON", "SOURCE", "STATE", "OBJECTS"}}
	for _, a := range d.Addons {
		t.addTexts(a.Name, a.Source, a.State, strconv.Itoa(a.Objects))
	}
	out.addTable(t)
	for _, a := range d.Addons {
		for _, text := range append(a.Differences, a.Problem) {
			if text != "" {
				out.addSpace()
				out.addParagraph("", a.Name+": "+text, plain)
			}
		}
	}
	out.flush(w)
	return nil
}
