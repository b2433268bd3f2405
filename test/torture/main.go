// Command torture interrupts installations on a lab: 20 times the operator's process is killed, 20 times all its SSH
// connections are cut, at moments spread over an installation. After each the next apply must bring the cluster to its
// end: all nodes Ready, three etcd members, nothing more to do. Then the hosts are reset for the next case.
//
// It says as it goes how each case went, and notes in a file which have passed: started again, it goes on with the others.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	only := flag.Int("only", 0, "run this case alone, whether it has passed or not")
	list := flag.Bool("list", false, "list the cases and stop")
	again := flag.Bool("again", false, "forget which cases have passed")
	state := flag.String("state", "torture.json", "where it is noted which cases have passed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *list {
		for _, c := range cases() {
			fmt.Println(c)
		}
		return
	}
	if err := torture(ctx, *only, *again, *state); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
}
