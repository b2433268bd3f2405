package workspace

import "syscall"

// endWithParent makes the kernel kill the program when the thread that started it ends.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
