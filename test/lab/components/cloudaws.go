package components

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// CloudAWSVersion is the version of AWS's cloud controller manager. It is built for the client libraries of its minor
// version.
const CloudAWSVersion = "v1.36.2"

// cloudAWSTag is the tag of its image in the chart of that version.
const cloudAWSTag = "v1.35.0"

// CloudAWSRepository is the location of AWS's charts without the scheme. cloudAWSChart is the chart of CloudAWSVersion,
// and cloudAWSChartVersion its version.
const (
	CloudAWSRepository   = "kubernetes.github.io/cloud-provider-aws"
	cloudAWSChart        = "aws-cloud-controller-manager"
	cloudAWSChartVersion = "0.0.11"
)

const cloudAWSModule = "k8s.io/cloud-provider-aws"

// cloudAWSRecipe builds the controller manager. It works without the replace directive, whose module is not published
// everywhere.
func cloudAWSRecipe() Recipe {
	return Recipe{
		Name: cloudAWSChart, Module: cloudAWSModule, Version: CloudAWSVersion,
		Packages:   map[string]string{cloudAWSChart: cloudAWSModule + "/cmd/aws-cloud-controller-manager"},
		LDFlags:    "-X k8s.io/component-base/version.gitVersion=" + CloudAWSVersion,
		Unreplaced: []string{"github.com/google/cel-go"},
	}
}

// CloudAWS returns a set with the image and the chart of AWS's cloud controller manager. A Mirror of the set serves the
// chart like the project's repository.
func (b *Builder) CloudAWS(ctx context.Context) (*Set, error) {
	set := &Set{Bin: map[string]string{}}
	err := b.Log.During("AWS's cloud controller manager "+CloudAWSVersion, func() error {
		if err := b.compileRecipe(ctx, set, cloudAWSRecipe()); err != nil {
			return err
		}
		if err := b.addCloudAWSImage(ctx, set); err != nil {
			return err
		}
		return b.addCloudAWSChart(ctx, set)
	})
	return set, err
}

func (b *Builder) addCloudAWSImage(ctx context.Context, set *Set) error {
	spec := imageSpec{
		Name: "provider-aws/cloud-controller-manager", Tag: cloudAWSTag,
		Layers:     []layerSpec{{Files: map[string]string{cloudAWSChart: set.Bin[cloudAWSChart]}}},
		Entrypoint: []string{"/" + cloudAWSChart},
	}
	dir, err := b.writeImage(ctx, spec)
	set.Images = append(set.Images, Image{Name: spec.Name, Tag: spec.Tag, Layout: dir})
	return err
}

// addCloudAWSChart adds the chart in the module, and the index of the repository.
func (b *Builder) addCloudAWSChart(ctx context.Context, set *Set) error {
	source, err := downloadModule(ctx, cloudAWSModule, CloudAWSVersion)
	if err != nil {
		return err
	}
	folder, err := folderLayer(filepath.Join(source, "charts", cloudAWSChart), cloudAWSChart)
	if err != nil {
		return err
	}
	name := cloudAWSChart + "-" + cloudAWSChartVersion + ".tgz"
	archive, err := b.writeArchive(ctx, name, folder.Files)
	if err != nil {
		return err
	}
	index := fmt.Sprintf("apiVersion: v1\nentries:\n  %s:\n  - {apiVersion: v1, name: %s, version: %s, urls: [%s]}\n",
		cloudAWSChart, cloudAWSChart, cloudAWSChartVersion, name)
	dir, err := b.Cache.Entry(ctx, "archives", digestOf("index v1", index), func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "index.yaml"), []byte(index), 0o644)
	})
	set.Files = append(set.Files, File{CloudAWSRepository + "/" + name, archive},
		File{CloudAWSRepository + "/index.yaml", filepath.Join(dir, "index.yaml")})
	return err
}
