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

// removeLeftovers removes ephemeral labs whose owner has ended. Docker's labels show labs with folders elsewhere, and
// folders show labs that docker does not have yet. If several processes find the same leftovers, one removes them and
// the others wait.
func removeLeftovers(ctx context.Context, cache components.Cache, log Logf) error {
	unlock, err := cache.Lock(ctx, "leftovers")
	if err != nil {
		return err
	}
	defer unlock()
	dead := map[string]string{} // folder by name
	format := fmt.Sprintf("{{.Label %q}}\t{{.Label %q}}\t{{.Label %q}}", labelName, labelDir, labelOwner)
	for _, list := range [][]string{{"ps", "--all"}, {"network", "ls"}} {
		lines, err := runDocker(ctx, append(list, "--filter", "label="+labelOwner, "--format", format)...)
		if err != nil {
			return fmt.Errorf("look for leftovers: %w", err)
		}
		for _, line := range strings.Split(lines, "\n") {
			if fields := strings.Split(line, "\t"); len(fields) == 3 && !isAlive(fields[2]) {
				dead[fields[0]] = fields[1]
			}
		}
	}
	labs, err := List()
	if err != nil {
		return err
	}
	for _, lab := range labs {
		if lab.Ephemeral && !isAlive(lab.Owner) {
			dead[lab.Name] = lab.Dir
		}
	}
	var problems []error
	for name, dir := range dead {
		log("removing lab %s, left behind by a process that is gone", name)
		problems = append(problems, removeLab(ctx, name, dir))
	}
	return errors.Join(problems...)
}

// ownProcess identifies this process, also against later processes with the same number.
func ownProcess() string {
	pid := os.Getpid()
	return strconv.Itoa(pid) + "-" + startTime(pid)
}

func isAlive(owner string) bool {
	pid, started, _ := strings.Cut(owner, "-")
	number, err := strconv.Atoi(pid)
	return err == nil && started != "" && startTime(number) == started
}

// startTime returns a process's start in the kernel's ticks since boot, or "" if there is no such process.
func startTime(pid int) string {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	// The second field is the program's name in brackets and may contain any character. starttime is field 22.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return ""
	}
	return fields[19]
}
