package cli

import (
	"strings"
	"testing"

	"kubeone/internal/cluster/record"
)

func TestARunIsFoundByAPartOfItsNameThatIsOnlyIts(t *testing.T) {
	t.Parallel()
	runs := []record.Run{
		{ID: "20260810T030000Z-7f3a10"},
		{ID: "20260810T030500Z-0001ff"},
		{ID: "20260811T000000Z-0001ff-x"},
		{ID: "20260811T000000Z-0001ff"},
	}
	for name, want := range map[string]string{
		"20260810T0300": runs[0].ID, "7f3a10": runs[0].ID, "20260811T000000Z-0001ff": runs[3].ID, "-x": runs[2].ID,
	} {
		if got, err := findRun(runs, name); err != nil || len(got) != 1 || got[0].ID != want {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
	for name, want := range map[string]string{
		"0001ff": "20260810T030500Z-0001ff, 20260811T000000Z-0001ff",
		"nobody": "in the history",
	} {
		if got, err := findRun(runs, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}
