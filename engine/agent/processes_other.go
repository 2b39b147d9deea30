//go:build !linux

package agent

// below says whether a process is another one; descent is not known here.
func below(pid, ancestor int) bool { return pid == ancestor }

// hasTerminal is false where nobody can tell.
func hasTerminal(int) bool { return false }

func running([]string, string) []int { return nil }

// livesIn is false where nobody can tell.
func livesIn(int, string) bool { return false }
