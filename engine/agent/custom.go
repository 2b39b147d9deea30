package agent

import (
	"errors"
	"strings"
)

func planCustom(p *planning, c Custom) error {
	if len(c.Command) == 0 {
		return errors.New("it has no command: set one under [agents] in config.toml")
	}
	p.argv(p.program)
	for _, arg := range c.Command[1:] {
		p.argv(strings.ReplaceAll(arg, "{session}", p.sessionID()))
	}
	p.out.Session = p.sessionID()
	p.out.Resume = p.BoundID != ""
	return nil
}
