package engine

import (
	"slices"
	"strings"

	"cellmux/cell"
	"cellmux/cell/git"
)

// forwarded are the provider variables that a guest gets from the host by name
// (spec/isolation-and-forge.txt): six, where they are set.
var forwarded = []string{
	"CLAUDE_CODE_OAUTH_TOKEN", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
	"ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL",
}

// forwardedOpenCode are those that OpenCode gets besides, since it can
// authenticate with every provider.
var forwardedOpenCode = []string{
	"OPENCODE_API_KEY", "OPENROUTER_API_KEY", "OPENAI_API_KEY",
	"GEMINI_API_KEY", "GOOGLE_API_KEY", "XAI_API_KEY",
}

// plainForwarded are configuration, not credentials.
var plainForwarded = []string{"ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL", "ANTHROPIC_SMALL_FAST_MODEL"}

// ownVariables never reach what runs in a cell: they describe cellmux's own
// terminal and processes, and the pane has its own.
var ownVariables = []string{"TERM", "TMUX", "TMUX_PANE", "CELLMUX_EXECUTION", PaneVariable}

// Variable is one variable of a program's environment, or one that was kept out
// of it, and why.
type Variable struct {
	Name   string
	Value  string // "" when kept out
	Kept   bool
	Secret bool   // its value must not be shown, logged or put into an argv
	From   string // who let it in, or why it stayed out; one phrase
}

// Environment is what a program in a cell gets, with a reason for each variable
// and for each one of the host's that it does not get.
type Environment struct {
	variables []Variable // in the order in which they were added; later wins
}

// Pairs returns the variables as KEY=VALUE, in cell.GuestEnv's order; a name may
// stand there twice, and the later one wins.
func (e Environment) Pairs() []string {
	var pairs []string
	for _, v := range e.variables {
		if v.Kept {
			pairs = append(pairs, v.Name+"="+v.Value)
		}
	}
	return pairs
}

// Secrets returns the names whose values must not ride in any argv.
func (e Environment) Secrets() []string {
	var names []string
	for _, v := range e.variables {
		if v.Kept && v.Secret && !slices.Contains(names, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

// Why returns one row for each name, sorted: the one that wins, or why the name
// stayed out.
func (e Environment) Why() []Variable {
	byName := make(map[string]Variable)
	for _, v := range e.variables {
		if old, ok := byName[v.Name]; ok && old.Kept && !v.Kept {
			continue // the host's was kept out, the cell's own stays
		}
		byName[v.Name] = v
	}
	rows := make([]Variable, 0, len(byName))
	for _, v := range byName {
		rows = append(rows, v)
	}
	slices.SortFunc(rows, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return rows
}

func (e *Environment) add(pairs []string, from string, secret bool) {
	for _, pair := range pairs {
		if name, value, ok := strings.Cut(pair, "="); ok {
			e.variables = append(e.variables, Variable{Name: name, Value: value, Kept: true, From: from, Secret: secret})
		}
	}
}

// value is what a program would see of a name; "" when it is not there.
func (e Environment) value(name string) string {
	for _, v := range slices.Backward(e.variables) {
		if v.Kept && v.Name == name {
			return v.Value
		}
	}
	return ""
}

// drop takes names out, whoever put them there.
func (e *Environment) drop(names []string, from string) {
	for i, v := range e.variables {
		if v.Kept && slices.Contains(names, v.Name) {
			e.variables[i] = Variable{Name: v.Name, From: from}
		}
	}
}

// inherit adds what a program on the host may see of the host's environment.
func (e *Environment) inherit(in cell.NarrowInput) {
	kept, decisions := cell.Narrow(in)
	reasons := make(map[string]cell.Decision, len(decisions))
	for _, d := range decisions {
		reasons[d.Name] = d
		if !d.Kept {
			e.variables = append(e.variables, Variable{Name: d.Name, From: d.Reason})
		}
	}
	for _, pair := range kept {
		name, value, _ := strings.Cut(pair, "=")
		e.variables = append(e.variables, Variable{
			Name: name, Value: value, Kept: true, From: reasons[name].Reason, Secret: looksSecret(name),
		})
	}
	e.drop(ownVariables, "it belongs to cellmux's own terminal")
	e.drop(git.LocationVariables(), "it points git at another repository")
}

// forward adds the provider variables that a guest gets by name, and says of
// everything else that a guest does not get the host's variables.
func (e *Environment) forward(environ []string, agent string) {
	names := forwarded
	if known, _ := cell.KnownAgent(agent); known == "opencode" {
		names = slices.Concat(forwarded, forwardedOpenCode)
	}
	for _, pair := range LastWins(environ) {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case !slices.Contains(names, name):
			e.variables = append(e.variables, Variable{Name: name, From: "a guest gets none of the host's variables but its provider's"})
		case value == "":
			e.variables = append(e.variables, Variable{Name: name, From: "it is empty"})
		default:
			e.variables = append(e.variables, Variable{
				Name: name, Value: value, Kept: true, From: "a provider variable of the host, forwarded by name",
				Secret: !slices.Contains(plainForwarded, name),
			})
		}
	}
}

// looksSecret tells whether a variable's name says that its value is a
// credential. It decides what is masked for display, nothing else.
func looksSecret(name string) bool {
	upper := strings.ToUpper(name)
	for _, word := range []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY", "CREDENTIAL", "AUTH"} {
		if strings.Contains(upper, word) {
			return !strings.HasSuffix(upper, "_SOCK")
		}
	}
	return false
}

// LastWins returns env with each name once, at its last value and place. A
// process that is started with a name twice sees the first or the last by the
// taste of its C library, so a launch must not hold one.
func LastWins(env []string) []string {
	seen := make(map[string]bool, len(env))
	kept := make([]string, 0, len(env))
	for _, pair := range slices.Backward(env) {
		name, _, ok := strings.Cut(pair, "=")
		if !ok || name == "" || seen[name] {
			continue
		}
		seen[name] = true
		kept = append(kept, pair)
	}
	slices.Reverse(kept)
	return kept
}
