package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cellmux/engine/fleet"
)

// newCell makes a cell of a directory.
func (c *commands) newCell() *cobra.Command {
	var n fleet.NewCell
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "new [DIR]",
		Short: "Make a cell of a project directory",
		Long: `Make a cell of a project directory (the current one by default) and print its
name. The name is fixed for life and never given out again: by default the
directory's base name, with -2, -3 when it is taken. A directory may be several
cells; standard error says so when it is one already. Nothing is started.`,
		Example: `  cellmux new
  cellmux new ~/src/api --name api-auth --engine host`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			dir, err := c.projectDir(given)
			if err != nil {
				return err
			}
			n.ProjectDir = dir
			app, err := c.app(cmd.Context())
			if err != nil {
				return err
			}
			snap, err := app.Fleet.Refresh(cmd.Context())
			if err != nil {
				return err
			}
			name, err := app.Fleet.NewCell(cmd.Context(), n)
			if err != nil {
				return err
			}
			if before, err := cellOf(snap, dir); err == nil && before.ProjectDir == dir {
				c.say("The directory is the cell %s already; %s is another cell of it. (cellmux rm %s undoes it.)", before.Name, name, name)
			}
			if asJSON {
				return c.printJSON(map[string]string{"name": name, "project_dir": dir})
			}
			_, err = fmt.Fprintln(c.Stdout, name)
			return err
		},
	}
	cmd.Flags().StringVar(&n.Name, "name", "", "name of the cell, [a-z0-9-]")
	cmd.Flags().StringVar(&n.Title, "title", "", "title shown in the list")
	cmd.Flags().StringVar(&n.Workspace, "workspace", "", `workspace (default "main")`)
	cmd.Flags().StringVar(&n.Engine, "engine", "", "engine: host, docker, tart, winkit, microvm or auto (default: selected)")
	cmd.Flags().StringVar(&n.OS, "os", "", "operating system of the cell, which chooses its engine: linux, macos or windows")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// projectDir is an existing directory, absolute and without symbolic links.
func (c *commands) projectDir(given []string) (string, error) {
	dir := c.Dir
	if len(given) == 1 {
		dir = given[0]
		if expanded, isPath := c.directory(dir); isPath {
			dir = expanded
		} else {
			dir = filepath.Join(c.Dir, dir)
		}
	}
	if dir == "" {
		return "", usagef("the current directory is gone; name a directory")
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("project directory %s: %w; make it first", dir, fleet.ErrNotFound)
	case err != nil:
		return "", fmt.Errorf("project directory %s cannot be read: %w", dir, err)
	case !info.IsDir():
		return "", usagef("%s is a file; a cell is made of a directory", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("project directory %s cannot be read: %w", dir, err)
	}
	return real, nil
}

// open opens a pane: a new slot, or an old one again.
func (c *commands) open() *cobra.Command {
	var agent string
	var asJSON, attach, trust bool
	cmd := &cobra.Command{
		Use:   "open [CELL[:SLOT]|DIR]",
		Short: "Open an agent or shell pane, or resume a slot",
		Long: `Open a pane in a cell and print its reference, CELL:SLOT. With CELL or a
directory a new slot is opened, with the agent of --agent or else the first one
found (else a shell); a directory that has no cell yet becomes one. With
CELL:SLOT that slot's program is started again, in its conversation; a slot that
runs is left as it is.

On the host an agent asks on its first start in a directory whether you trust
it. On a terminal cellmux asks you once for each directory, and answers every
agent's question; elsewhere --trust-directory says it, and without it the agents
ask in their panes. Yours is the word: no file of yours is written without it.`,
		Example: `  cellmux open                     # a cell of the current directory, first agent found
  cellmux open api --agent shell
  cellmux open api --append-system-prompt 'Touch nothing below vendor/.'
  cellmux open api:0               # resume after a stop, a crash or a reboot`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) (err error) {
			ctx := cmd.Context()
			prompts, err := c.promptsGiven()
			if err != nil {
				return err
			}
			app, snap, err := c.snapshot(ctx)
			if err != nil {
				return err
			}
			text := ""
			if len(given) == 1 {
				text = given[0]
			}
			ref, err := c.target(snap, text)
			if dir, isDir := c.directory(text); isDir && errors.Is(err, fleet.ErrNotFound) {
				if dir, err = c.projectDir([]string{dir}); err != nil {
					return err
				}
				ref.Slot = fleet.WholeCell
				if ref.Cell, err = app.Fleet.NewCell(ctx, fleet.NewCell{ProjectDir: dir, Agent: agent}); err != nil {
					return err
				}
				c.say("Made the cell %s of %s.", ref.Cell, dir)
				defer func(made string) {
					if err != nil { // its name would be used up if it were taken away again
						c.say("The cell %s stays, without a pane.", made)
					}
				}(ref.Cell)
			}
			if err != nil {
				return err
			}
			name := agent
			if s, found := findSlot(snap, ref); found {
				name = s.Agent
			}
			var said *bool
			if cmd.Flags().Changed("trust-directory") {
				said = &trust
			}
			if err := c.firstContact(ctx, app, ref, name, said); err != nil {
				return err
			}
			if ref.Slot == fleet.WholeCell {
				if ref, err = app.Fleet.Open(ctx, ref.Cell, agent); err != nil {
					return err
				}
				if agent == "" {
					c.sayNotes(ctx, app, ref)
				}
			} else {
				if agent != "" {
					return usagef("--agent goes with a new slot; %s has its agent", ref)
				}
				s, _ := findSlot(snap, ref)
				switch live := s.Status.Live(); {
				case live && prompts:
					return usagef("%s: %w", ref, errPromptsTooLate)
				case live:
					c.say("%s runs already.", ref)
				default:
					// Another process may have been faster since the list was read.
					started, err := app.Fleet.Resume(ctx, ref)
					if err != nil {
						return err
					}
					if !started {
						c.say("%s runs already.", ref)
					}
				}
			}
			if asJSON {
				if err := c.printOpened(cmd, app, ref); err != nil {
					return err
				}
			} else if _, err := fmt.Fprintln(c.Stdout, ref); err != nil {
				return err
			}
			if attach {
				return c.attachTo(ctx, app, ref)
			}
			return nil
		},
	}
	c.promptFlags(cmd)
	cmd.Flags().StringVar(&agent, "agent", "", "claude, codex, gemini, opencode, grok, shell, or one of config.toml")
	cmd.Flags().BoolVar(&trust, "trust-directory", false, "answer agents' questions about the directory of a host cell, for good; =false leaves them to ask")
	cmd.Flags().BoolVar(&attach, "attach", false, "attach to the pane at once")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the slot as JSON")
	return cmd
}

// firstContact asks the user, once for each directory of this host, whether
// agents need not ask about it; said is the answer of the command line, nil none.
func (c *commands) firstContact(ctx context.Context, app *App, ref fleet.Ref, agent string, said *bool) error {
	contact, err := app.Fleet.FirstContact(ctx, ref.Cell, agent)
	switch {
	case err != nil:
		return err
	case said != nil:
		if contact.Directory == "" {
			return usagef("--trust-directory is about this host's directories; %s has a home of its own, where nothing is asked", ref.Cell)
		}
		return app.Fleet.AnswerFirstContact(ctx, contact.Directory, *said)
	case len(contact.Asks) == 0:
		return nil
	}
	asks := fmt.Sprintf("%s asks on its first start in %s: %s.", oneLine(contact.Agent), oneLine(contact.Shown), oneLine(strings.Join(contact.Asks, "; ")))
	if !c.Terminal {
		c.say("%s Answer in its pane, or open with --trust-directory.", asks)
		return nil
	}
	c.say("%s", asks)
	question := "Answer that for every agent in this directory?"
	if contact.File != "" {
		question = fmt.Sprintf("Answer that for every agent in this directory, and write it to your %s?", oneLine(contact.File))
	}
	trusted, err := c.ask(ctx, question)
	if err != nil {
		return err
	}
	return app.Fleet.AnswerFirstContact(ctx, contact.Directory, trusted)
}

// sayNotes tells what the user should know about a slot that was opened without
// naming an agent, such as that none was found.
func (c *commands) sayNotes(ctx context.Context, app *App, ref fleet.Ref) {
	snap, err := app.Fleet.Refresh(ctx)
	if err != nil {
		return // the slot is open; its notes are in the list
	}
	s, _ := findSlot(snap, ref)
	for _, note := range s.Notes {
		c.say("%s", oneLine(note))
	}
}

func (c *commands) printOpened(cmd *cobra.Command, app *App, ref fleet.Ref) error {
	snap, err := app.Fleet.Refresh(cmd.Context())
	if err != nil {
		return err
	}
	s, found := findSlot(snap, ref)
	if !found {
		return fmt.Errorf("slot %s: %w", ref, fleet.ErrNotFound)
	}
	return c.printJSON(toSlotJSON(s))
}
