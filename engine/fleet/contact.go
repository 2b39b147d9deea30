package fleet

import (
	"context"
	"fmt"

	"cellmux/engine"
)

// FirstContact is what an agent would ask its user at its start in a directory
// of this host, once the user has been asked nothing about that directory yet.
// Without Asks there is nothing to ask.
type FirstContact struct {
	Directory string // absolute; "" where the cell has a home of its own
	Shown     string // the same for people
	Agent     string // its title
	Asks      []string
	File      string // the user's own file that Yes writes, for people; "" none
}

// FirstContact says whether to ask the user before an agent is opened in a cell;
// agent "" is the one that Open would take. Cells with a home of their own are
// arranged there without asking.
func (f *Fleet) FirstContact(ctx context.Context, cell, agent string) (FirstContact, error) {
	c, err := f.cell(ctx, cell)
	if err != nil {
		return FirstContact{}, err
	}
	if c.Engine != string(engine.Host) {
		return FirstContact{}, nil
	}
	out := FirstContact{Directory: c.ProjectDir, Shown: f.tilde(c.ProjectDir)}
	_, answered, err := f.o.Store.DirectoryTrust(ctx, c.ProjectDir)
	if err != nil || answered {
		return out, err
	}
	name, _, err := f.pick(ctx, c, agent)
	if err != nil {
		return out, err
	}
	a, known := f.o.Agents.Lookup(name)
	if !known {
		return out, nil
	}
	contact := a.FirstContact(f.o.Home, c.ProjectDir, f.o.Getenv)
	out.Agent, out.Asks = a.Title(), contact.Asks
	if contact.File != "" && len(out.Asks) > 0 {
		out.File = f.tilde(contact.File)
	}
	return out, nil
}

// AnswerFirstContact keeps the user's answer about a directory, for every agent
// and for good; a later answer replaces it.
func (f *Fleet) AnswerFirstContact(ctx context.Context, directory string, trusted bool) error {
	word := map[bool]string{true: "trust", false: "let agents ask about"}[trusted]
	return f.did(fmt.Sprintf("%s %s", word, f.tilde(directory)), f.o.Store.SetDirectoryTrust(ctx, directory, trusted))
}
