//go:build race

package decide

// raceEnabled says that the race detector slows everything down; large enumerations are then left to runs without it.
const raceEnabled = true
