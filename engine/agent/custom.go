package agent

import (
	"errors"
	"strings"
)

func planCustom(p *planning, c Custom) error {
	if len(c.Command) == 0 {
		return errors.New("it has no command: set one under [agents] in config.toml")
	}
	program, args := p.program, c.Command[1:]
	if p.Headless {
		if c.Headless[0] != c.Command[0] {
			program = c.Headless[0]
		}
		args = c.Headless[1:]
	}
	p.argv(program)
	for _, arg := range args {
		p.argv(strings.ReplaceAll(arg, "{session}", p.sessionID()))
	}
	p.out.Session = p.sessionID()
	p.out.Resume = p.BoundID != ""
	return nil
}
