//go:build !race

package decide

// raceEnabled says that the race detector slows everything down.
const raceEnabled = false
