// Package tmux speaks to the private tmux server that holds the panes.
//
// The rule it keeps: the user's own server and configuration are never touched;
// a pane is named by its ID or an exact session name, never by prefix or title;
// what a pane prints, names or titles is hostile; no answer in time means
// unknown, never dead.
package tmux
