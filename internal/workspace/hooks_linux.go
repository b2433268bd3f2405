package workspace

import "syscall"

// killWithParent makes the kernel kill the program when the thread that started it exits.
func killWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
