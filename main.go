// Command cellmux is a full-screen workspace manager for coding agents.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/term"

	"cellmux/cell/cfg"
	"cellmux/engine"
	"cellmux/engine/docker"
	"cellmux/engine/docker/egress"
	"cellmux/tui/cli"
)

// version is set by the linker.
var version = "development"

func main() { os.Exit(start()) }

// start reads what there is of the process, and hands over to the command line:
// nothing is opened before a command asks for it.
func start() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if len(os.Args) > 1 && os.Args[1] == docker.EgressArgument {
		// The proxy's container holds this program and nothing else: no HOME, no
		// terminal, no state.
		if err := egress.Main(ctx, os.Args[2:], os.Stderr); err != nil {
			fmt.Fprintln(os.Stderr, "cellmux:", err)
			return cli.ExitFailed
		}
		return cli.ExitOK
	}
	w := wiring{environ: os.Environ()}
	w.home = w.getenv("HOME")
	w.user = userName(w.getenv)
	w.paths = cli.PathsFrom(w.getenv, w.home, os.TempDir(), strconv.Itoa(os.Getuid()))
	w.dir, _ = os.Getwd() // "" when it is gone: commands say so

	return cli.Main(ctx, cli.Options{
		Args:          os.Args[1:],
		Stdin:         os.Stdin,
		Stdout:        os.Stdout,
		Stderr:        os.Stderr,
		Terminal:      term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stdout.Fd())),
		Dir:           w.dir,
		Getenv:        w.getenv,
		Version:       version,
		Paths:         w.paths,
		Open:          w.openForCommands,
		Screen:        w.screen,
		Handoff:       handOff(w.getenv),
		Checks:        w.checks,
		CheckSettings: func() error { _, err := w.settings(); return err },
		LoadCell:      w.loadCell,
	})
}

func handOff(getenv func(string) string) func(file string) error {
	return func(file string) error {
		err := engine.RunHandoff(file, getenv)
		return cli.Exit(err.Code, err)
	}
}

func (w wiring) loadCell(dir string) (*cfg.Effective, error) {
	return cfg.Load(cfg.Sources{
		GlobalFile: w.paths.GlobalCell, ProjectDir: dir, Home: w.home, Getenv: w.getenv, Approvals: w.approvals(),
	})
}

// approvals remembers which project files the user approved.
func (w wiring) approvals() *cfg.ApprovalStore {
	return cfg.NewApprovalStore(filepath.Join(w.paths.State, "approvals"))
}

// getenv is os.Getenv over the environment that everything else is given.
func (w wiring) getenv(name string) string {
	value := ""
	for _, pair := range w.environ {
		if v, found := strings.CutPrefix(pair, name+"="); found {
			value = v
		}
	}
	return value
}

func userName(getenv func(string) string) string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return getenv("USER")
}

// join reports every error of a list of ends.
func join(ends ...func() error) func() error {
	return func() error {
		var all []error
		for _, end := range ends {
			all = append(all, end())
		}
		return errors.Join(all...)
	}
}
