//go:build !linux

package agent

// listensBelow says whether the program that listens on a port of 127.0.0.1 is
// a process or descends from it. Who listens is not known here: the password
// alone tells.
func listensBelow(int, int) bool { return true }
