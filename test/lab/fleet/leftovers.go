package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"kubeone/test/lab/components"
)

// removeLeftovers removes ephemeral labs whose owner is gone. What docker has of them tells of labs whose folders are
// elsewhere, and the folders tell of labs that docker does not have yet. Of several processes that come upon the same
// leftovers one removes them, and the others wait until it has done so.
func removeLeftovers(ctx context.Context, cache components.Cache, log Logf) error {
	unlock, err := cache.Lock(ctx, "leftovers")
	if err != nil {
		return err
	}
	defer unlock()
	dead := map[string]string{} // folder by name
	format := fmt.Sprintf("{{.Label %q}}\t{{.Label %q}}\t{{.Label %q}}", labelName, labelDir, labelOwner)
	for _, list := range [][]string{{"ps", "--all"}, {"network", "ls"}} {
		lines, err := docker(ctx, append(list, "--filter", "label="+labelOwner, "--format", format)...)
		if err != nil {
			return fmt.Errorf("look for leftovers: %w", err)
		}
		for _, line := range strings.Split(lines, "\n") {
			if fields := strings.Split(line, "\t"); len(fields) == 3 && !alive(fields[2]) {
				dead[fields[0]] = fields[1]
			}
		}
	}
	labs, err := List()
	if err != nil {
		return err
	}
	for _, lab := range labs {
		if lab.Ephemeral && !alive(lab.Owner) {
			dead[lab.Name] = lab.Dir
		}
	}
	var problems []error
	for name, dir := range dead {
		log("removing lab %s, left behind by a process that is gone", name)
		problems = append(problems, remove(ctx, name, dir))
	}
	return errors.Join(problems...)
}

// self names this process so that no later one with the same number is taken for it.
func self() string {
	pid := os.Getpid()
	return strconv.Itoa(pid) + "-" + startTime(pid)
}

func alive(owner string) bool {
	pid, started, _ := strings.Cut(owner, "-")
	number, err := strconv.Atoi(pid)
	return err == nil && started != "" && startTime(number) == started
}

// startTime is when a process started, in the kernel's ticks since boot; empty when there is no such process.
func startTime(pid int) string {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	// The second field is the program's name in brackets and may hold anything; starttime is the 22nd field.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}
