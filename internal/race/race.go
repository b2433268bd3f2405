// Package race tells tests whether the race detector runs, which slows everything down some six times. What has one
// goroutine, as decide, plan and the simulated world, cannot race: such tests take fewer cases then, and all of them in
// a run without it, which "make test" has too. So do those that lead the real executor through many worlds.
package race

// Fewer is so many cases, or a tenth of them where the race detector runs.
func Fewer(cases int) int {
	if Enabled {
		return cases / 10
	}
	return cases
}
