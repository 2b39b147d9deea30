//go:build !linux

package terminal

// modesOf leaves the question to stty: each system writes its own form.
func modesOf(string) string { return "" }
