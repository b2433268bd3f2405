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

// machine is where the figures come from.
type machine struct {
	Cores    int    `json:"cores"`
	MemoryGB int    `json:"memoryGB"`
	Platform string `json:"platform"`
}

func thisMachine() machine {
	m := machine{Cores: runtime.NumCPU(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	text, _ := os.ReadFile("/proc/meminfo") // without it the report has no memory
	for _, line := range strings.Split(string(text), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "MemTotal:" {
			kb, _ := strconv.Atoi(fields[1])
			m.MemoryGB = (kb + 1<<19) >> 20
		}
	}
	return m
}

// ticksPerSecond is the unit of /proc/stat (USER_HZ), which is 100 on every Linux that Go runs on.
const ticksPerSecond = 100

// cpuSeconds are the seconds that all processors of the machine were busy since it started, as /proc/stat has them
// (proc_stat(5)): everything but idle, waiting for disks, and what the hypervisor took away.
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

// cost is what something took.
type cost struct {
	Seconds    float64 `json:"seconds"`
	CPUSeconds float64 `json:"cpuSeconds"` // of the whole machine
}

// timed measures f, by the clock and by the machine's processors.
func timed(f func() error) (cost, error) {
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

// median is the middle of the values, 0 without any. The slice is left alone.
func median(values []float64) float64 {
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
