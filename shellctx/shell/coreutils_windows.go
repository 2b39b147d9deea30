package shell

import (
	"context"
	"slices"

	"mvdan.cc/sh/moreinterp/coreutils"
	"mvdan.cc/sh/v3/interp"
)

// coreutilNames are the commands of package coreutils that run in this process.
// Its xargs is left out: it starts programs itself, which would escape both the
// block list and the end of the tree.
var coreutilNames = []string{
	"base64", "cat", "chmod", "cp", "find", "gunzip", "gzcat", "gzip", "ls", "mkdir", "mktemp", "mv", "rm", "shasum",
	"tar", "touch",
}

// coreutil returns the Go version of a command that Windows does not have; nil
// for any other.
func coreutil(name string) interp.ExecHandlerFunc {
	if !slices.Contains(coreutilNames, name) {
		return nil
	}
	return coreutils.ExecHandler(func(context.Context, []string) error { return interp.ExitStatus(codeNotFound) })
}
