package load

import (
	"fmt"
	"os"
	"time"
)

// starvedShare is the share of the time above which a machine says nothing about how soon a request is served:
// processes waited for a processor nearly always.
const starvedShare = 0.75

// processorWait is for how long, since the machine's start, some process waited for a processor; 0 where the kernel
// does not say. See Documentation/accounting/psi.rst of Linux.
func processorWait() time.Duration {
	text, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0
	}
	var average [3]float64
	var microseconds int64
	if _, err := fmt.Sscanf(string(text), "some avg10=%f avg60=%f avg300=%f total=%d",
		&average[0], &average[1], &average[2], &microseconds); err != nil {
		return 0
	}
	return time.Duration(microseconds) * time.Microsecond
}
