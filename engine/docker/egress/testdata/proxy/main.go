// Command proxy is the egress proxy alone, for tests that need it as a file.
package main

import (
	"context"
	"fmt"
	"os"

	"cellmux/engine/docker/egress"
)

func main() {
	if err := egress.Main(context.Background(), os.Args[2:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
