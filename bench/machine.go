package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// machine describes the machine that produced the figures.
type machine struct {
	Cores    int    `json:"cores"`
	MemoryGB int    `json:"memoryGB"`
	Platform string `json:"platform"`
}

func thisMachine() machine {
	m := machine{Cores: runtime.NumCPU(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	text, _ := os.ReadFile("/proc/meminfo") // on failure the report has no memory size
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "MemTotal:" {
			kb, _ := strconv.Atoi(fields[1])
			m.MemoryGB = (kb + 1<<19) >> 20
		}
	}
	return m
}

// ticksPerSecond is the unit of /proc/stat (USER_HZ). It is 100 on every Linux that Go supports.
const ticksPerSecond = 100

// cpuSeconds returns how many seconds all processors were busy since the machine started, from /proc/stat
// (proc_stat(5)). It excludes idle, iowait and steal.
func cpuSeconds() (float64, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read the machine's CPU time: %w", err)
	}
	return parseCPU(text)
}

func parseCPU(stat []byte) (float64, error) {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, fmt.Errorf("/proc/stat begins with %q", line)
	}
	var ticks float64
	for _, n := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq
		value, err := strconv.ParseFloat(fields[n], 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/stat: %w", err)
		}
		ticks += value
	}
	return ticks / ticksPerSecond, nil
}

type cost struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"` // of the whole machine
}

// measureCost measures the elapsed time and the machine's processor time of f.
func measureCost(f func() error) (cost, error) {
	before, err := cpuSeconds()
	if err != nil {
		return cost{}, err
	}
	start := time.Now()
	err = f()
	c := cost{Seconds: time.Since(start).Seconds()}
	if err != nil {
		return c, err
	}
	after, err := cpuSeconds()
	c.CPUSeconds = after - before
	return c, err
}

// medianOf returns 0 for no values. It does not change the slice.
func medianOf(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
