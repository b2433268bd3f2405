//go:build race

package race

// Enabled says whether the race detector runs.
const Enabled = true
