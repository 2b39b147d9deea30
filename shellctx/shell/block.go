package shell

import "fmt"

// BlockFunc says whether a command must not run; args[0] is its name as it was
// written. It is called from several goroutines at once.
type BlockFunc func(args []string) bool

// blocked returns why a command must not run, "" when it may.
func (x *execution) blocked(args []string) string {
	for i, blocks := range x.blocks {
		if blocks(args) {
			return fmt.Sprintf("not allowed by rule %d of the block list", i+1)
		}
	}
	return ""
}
