package sshpool_test

import (
	"context"
	"testing"
	"time"

	"kubeone/internal/host"
	"kubeone/internal/host/sshpool"
	"kubeone/internal/testutil/sshtest"
)

func TestACommandGivenUpWhileItsChannelIsOpenedFreesItsSlotWhenTheAnswerComes(t *testing.T) {
	t.Parallel()
	s := sshtest.Start(t, sshtest.Options{})
	h := newPool(t, sshpool.Options{MaxSessions: 1}).Host(targetOf(t, s))
	runScript(t, h, ":")
	s.Pause()
	ctx, cancel := context.WithTimeout(testContext(t), 50*time.Millisecond)
	defer cancel()
	if _, err := h.Run(ctx, host.Cmd{Script: ":"}); err == nil {
		t.Fatal("a host that is paused answered")
	}
	s.Resume()
	runScript(t, h, ":") // waits for the only slot
}
