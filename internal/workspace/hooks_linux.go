package workspace

import "syscall"

// endWithParent has the kernel kill the program when the thread ends that has started it.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
