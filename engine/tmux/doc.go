// Package tmux speaks to the private tmux server that holds the panes.
//
// The rule it keeps: the user's own server and configuration are never touched;
// a pane is named by its ID or an exact session name, never by prefix or title;
// what a pane prints, names or titles is hostile; no answer in time means
// unknown, never dead.
//
// While Server.Run runs, everything goes over one control client (tmux(1),
// CONTROL MODE) and no process is started. Without it, as in a command of the
// command line, or while the control client is away, each call is one process.
// Both ways run the same commands and give the same answers.
package tmux
