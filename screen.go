package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"cellmux/cell"
	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/fleet"
	"cellmux/engine/tmux"
	"cellmux/tui"
	"cellmux/tui/terminal"
)

// The screen's heap, of which little lives, may grow half as much as Go would let
// it: the program is idle nearly always, and stays for days. Its start makes some
// megabytes of garbage, and has better use for the processors than collecting it;
// afterwards that goes back to the system.
const (
	gcPercent      = 50
	startGCPercent = 400
	startTakes     = time.Second
)

// screen runs the full-screen program until the user quits.
func (w wiring) screen(ctx context.Context) (ended error) {
	debug.SetGCPercent(startGCPercent)
	started := time.AfterFunc(startTakes, func() {
		debug.SetGCPercent(gcPercent)
		debug.FreeOSMemory()
	})
	defer started.Stop()
	background, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	// tmux is at work before anything else begins.
	a, err := w.open(ctx, cell.ResolveOpts{}, func(server *tmux.Server) {
		if width, height, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
			server.SetSize(width, height)
		}
		server.Begin(ctx)
		running.Go(func() { _ = server.Run(background) }) // what goes wrong is in its list
	})
	if err != nil {
		return err
	}
	presence, told, err := fleet.Appear(filepath.Join(w.paths.State, "screens"), os.Getpid(), time.Now())
	a.notices = append(a.notices, told...)
	if err != nil { // no reason not to start
		a.log.Warn("screens", "error", err.Error())
	} else {
		if err := presence.Report(); err != nil {
			a.log.Warn("screens", "error", err.Error())
		}
		defer func() {
			leave := presence.Leave
			if errors.Is(ended, tui.ErrFailed) {
				leave = func() error { return presence.Failed(ended) }
			}
			if err := leave(); err != nil {
				a.log.Warn("screens", "error", err.Error())
			}
		}()
	}
	if err := engine.CleanHandoffs(a.runtime, time.Now()); err != nil {
		a.log.Warn("launch files", "error", err.Error())
	}
	told, err = a.shell.Recover(ctx)
	a.notices = append(a.notices, told...)
	if err != nil {
		a.log.Warn("interrupted commands", "error", err.Error())
	}
	// Without a keeper, kill -9 leaves the terminal raw, as other programs do. It
	// must be there before the screen.
	keeper, err := terminal.Keep(terminal.Options{Runner: proc.New(), Env: w.environ})
	if err != nil {
		a.log.Warn("terminal keeper", "error", err.Error())
	}
	defer keeper.Release()
	running.Go(func() { a.run(background) })
	running.Go(func() {
		select {
		case <-a.fleet.Listed():
			a.fleet.EndLeftovers(background)
		case <-background.Done():
		}
	})

	desk := fleet.Desk{Runner: proc.New(), Environ: w.environ, TempDir: a.runtime, LogFile: w.paths.Log}
	err = tui.Run(ctx, tui.Options{
		Ports: tui.Ports{
			Fleet: a.fleet, Details: a.fleet, Panes: a.panes, Shell: a.shell, Conversation: a.conversation,
			Jobs: a.shell, Journal: desk, Clipboard: desk, Editor: desk,
		},
		Settings: tui.Settings{
			Keys: a.settings.Keys, Theme: a.settings.Screen.Theme, Themes: a.settings.Themes,
			NoMouse: a.settings.Screen.NoMouse, ASCII: a.settings.Screen.ASCII, AskByDefault: a.settings.Shell.Ask,
			Sort: a.settings.Screen.Sort, Group: a.settings.Screen.Group,
		},
		Version: version, In: os.Stdin, Out: os.Stdout, Getenv: w.getenv, Directory: w.dir,
		Notice: strings.Join(a.notices, " "),
	})
	keeper.Release()
	stop()
	running.Wait()
	return errors.Join(err, a.close())
}
