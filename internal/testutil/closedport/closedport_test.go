package closedport_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"kubeone/internal/testutil/closedport"
)

func TestThePortRefusesAndNobodyElseGetsIt(t *testing.T) {
	t.Parallel()
	address := closedport.Address(t)
	if _, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialed: %v, want that it is refused", err)
	}
	if l, err := net.Listen("tcp", address); err == nil {
		_ = l.Close()
		t.Errorf("another server listens on %s", address)
	}
}
