// Package race tells tests whether the race detector runs, which slows everything down some six times. What has one
// goroutine, as decide, plan and the simulated world, cannot race: such tests take fewer cases then, and all of them in
// a run without it, which "make test" has too.
package race
