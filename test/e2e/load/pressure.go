package load

import (
	"fmt"
	"os"
	"time"
)

// starvedShare is the share of time with processes waiting for a processor above which latency is not judged.
const starvedShare = 0.75

// processorWait returns for how long some process has waited for a processor since the machine started, or 0 without
// support of the kernel. See Documentation/accounting/psi.rst of Linux.
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
