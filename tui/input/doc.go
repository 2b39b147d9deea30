// Package input is the one reader of the terminal, and the last writer to it.
//
// The rule it keeps: each read that Bubble Tea makes gives it exactly one event
// (one key, one mouse or focus report, one paste), whatever way the bytes came;
// what the terminal answers to a query is never taken for typing; and nobody
// reads the terminal while a program in the foreground owns it.
//
// Why: Bubble Tea v1 makes one KeyMsg of all letters of a read ("jj" matches no
// binding), takes ESC and "[A" of two reads for an Esc and text, loses a rune
// that is split over two reads, and types a late colour report as text.
package input

import "github.com/charmbracelet/lipgloss"

// This must run before Bubble Tea's own init, which asks the terminal for its
// background colour and waits 5 seconds for an answer that may never come, in
// every subcommand. Packages are initialised in the order of their import
// paths as soon as what they import is ready, so this one must not import
// Bubble Tea, not even through another package.
func init() { lipgloss.SetHasDarkBackground(true) }
