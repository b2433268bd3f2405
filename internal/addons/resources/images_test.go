package resources

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPodImages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want []PodImage
	}{
		"pod": {`
kind: Pod
spec:
  initContainers: [{name: a, image: "init:1"}]
  containers: [{name: b, image: "main:1"}, {name: c, image: "main:1"}]
  ephemeralContainers: [{name: d, image: "debug:1"}]
  volumes: [{name: e, image: {reference: "data:1"}}, {name: f, emptyDir: {}}]
`, []PodImage{{"data:1", false}, {"debug:1", false}, {"init:1", false}, {"main:1", false}}},
		"workload": {"kind: StatefulSet\nspec: {template: {spec: {containers: [{image: 'a:1'}]}}}\n",
			[]PodImage{{"a:1", false}}},
		"CronJob": {"kind: CronJob\nspec: {jobTemplate: {spec: {template: {spec: {containers: [{image: 'a:1'}]}}}}}\n",
			[]PodImage{{"a:1", false}}},
		"PodTemplate": {"kind: PodTemplate\ntemplate: {spec: {containers: [{image: 'a:1'}]}}\n", []PodImage{{"a:1", false}}},
		"custom kind": {"kind: Rollout\nspec: {template: {spec: {containers: [{image: 'a:1'}]}}}\n",
			[]PodImage{{"a:1", false}}},
		"pattern of a policy": {
			"kind: Policy\nspec: {rules: [{pattern: {spec: {containers: [{image: '*'}]}}}], containers: [{image: '*'}]}\n",
			nil,
		},
		"other types": {"kind: Pod\nspec: {containers: [1, {image: 2}, {image: ''}], " +
			"initContainers: x, volumes: [{image: y}]}",
			nil},
		"pulled each time": {`
kind: Pod
spec:
  containers:
  - {image: "a"}
  - {image: "reg:5000/b"}
  - {image: "c:latest"}
  - {image: "c:latest", imagePullPolicy: IfNotPresent}
  - {image: "d:1", imagePullPolicy: Always}
  - {image: "e@sha256:00"}
  - {image: "f", imagePullPolicy: Never}
`, []PodImage{{"a", true}, {"c:latest", true}, {"d:1", true}, {"e@sha256:00", false}, {"f", false},
			{"reg:5000/b", true}}},
	} {
		objects, err := Render(c.text, nil)
		if err != nil {
			t.Fatal(name, err)
		}
		if diff := cmp.Diff(c.want, PodImages(objects)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
