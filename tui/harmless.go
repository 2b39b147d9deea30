package tui

import (
	"slices"

	"cellmux/engine/fleet"
)

// harmless cleans once what a snapshot has to show, so that no view can forget
// to. Names and directories that go back to the ports stay as they are, and are
// cleaned where they are shown. The snapshot itself is somebody else's: this is
// a copy.
func harmless(s fleet.Snapshot) fleet.Snapshot {
	s.Server = clean(s.Server)
	s.Cells = slices.Clone(s.Cells)
	for i := range s.Cells {
		c := &s.Cells[i]
		c.Title, c.Engine, c.EngineReason = clean(c.Title), clean(c.Engine), clean(c.EngineReason)
		c.Problem, c.Approval, c.Git = clean(c.Problem), clean(c.Approval), clean(c.Git)
		c.Guest.Word, c.Guest.Trouble, c.Guest.Restart = clean(c.Guest.Word), clean(c.Guest.Trouble), clean(c.Guest.Restart)
		c.Slots = slices.Clone(c.Slots)
		for j := range c.Slots {
			t := &c.Slots[j]
			t.Agent, t.Title, t.Detail, t.Question = clean(t.Agent), clean(t.Title), clean(t.Detail), clean(t.Question)
		}
	}
	s.Outside = slices.Clone(s.Outside)
	for i := range s.Outside {
		o := &s.Outside[i]
		o.Session, o.Command, o.Title = clean(o.Session), clean(o.Command), clean(o.Title)
	}
	s.Engines = slices.Clone(s.Engines)
	for i := range s.Engines {
		e := &s.Engines[i]
		e.Kind, e.Detail = clean(e.Kind), clean(e.Detail)
	}
	s.Work = slices.Clone(s.Work)
	for i := range s.Work {
		w := &s.Work[i]
		w.What, w.Step, w.Unit = clean(w.What), clean(w.Step), clean(w.Unit)
	}
	return s
}
