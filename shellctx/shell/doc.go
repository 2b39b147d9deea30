// Package shell runs shell source on every platform, in this process, on the
// interpreter of mvdan.cc/sh (spec/shell.txt).
//
// The rule it keeps: a command is owned by its context. Whatever the command
// started, however it detached itself, ends when the context ends, and a
// cancelled command returns within 2.5 seconds. Nothing is written to a
// caller's writer after the call has returned.
//
// # Where it is not bash
//
// Job control (fg, bg, jobs, disown), signal traps other than EXIT and ERR,
// file descriptors above 2, coprocesses, ulimit and umask do not exist: they
// fail and say so. Subshells are goroutines, so $$ is cellmux's own process in
// all of them. Commands should use forward slashes on Windows as well. The
// differences that the tests know are listed, each with its reason, in
// testdata/differential.txt.
//
// On Windows, cat, cp, find, ls, mkdir, mv, rm, tar, touch and their like run in
// this process, on u-root's Go versions. jq does everywhere (gojq).
//
// # What persists in a Shell
//
// The working directory and exported scalar variables persist from one Exec to
// the next, also when the command failed or was cancelled. Unexported
// variables, functions, aliases, options and arrays do not.
//
// # Exit codes
//
// As bash's: 126 found but not executable (or blocked), 127 not found, 128+n
// killed by signal n, 2 a syntax error. A cancelled command is 130, and one
// that never started is NotStarted, which no program can return.
//
// # Block lists
//
// A block list is a guard-rail and not a sandbox: it stops a command that is
// spelled out, also behind env, command, exec, nohup, xargs, sh -c and an
// absolute path. A script, an interpreter or a copied program goes past it.
package shell
