package cfg

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"
	"mvdan.cc/sh/v3/syntax"
)

// Expand expands the shell references of one value, as shell.ExpandValue does.
// environ is KEY=VALUE, later wins.
type Expand func(ctx context.Context, value string, environ []string) (string, error)

// oldSecretReference is ${secret:NAME}; secrets are variables like any other now.
var oldSecretReference = regexp.MustCompile(`\$\{secret:([A-Za-z_][A-Za-z0-9_]*)\}`)

// ExpandAll returns the configuration with the references of its strings
// expanded: $VAR, ${VAR:-default}, $(command). A string without a dollar sign and
// a backquote is taken as it is, quotes and backslashes included; prompts,
// sources of secrets and default_command never are expanded.
//
// A plain reference to a variable that is unset or empty is an error: ${VAR:-}
// says that it may be. Every such reference, and every other fault, is reported
// at once with its file and key, in an *Error; the strings at fault then are as
// they were. It runs the commands that the values name, one after the other, until
// ctx ends.
func (e *Effective) ExpandAll(ctx context.Context, environ []string, expand Expand) (CellConfig, error) {
	var problems []Problem
	report := func(key toml.Key, item string, format string, args ...any) {
		origin, ok := e.origins[itemOrigin(key, item)]
		if !ok {
			origin = e.origins[key.String()]
		}
		l := layer{name: origin.Layer}
		p := l.problem(key, format, args...)
		p.File, p.Position = origin.File, origin.Position
		problems = append(problems, p)
	}
	expanded, _ := mapStrings(e.config, func(key toml.Key, tag reflect.StructTag, s string) (string, error) {
		if tag.Get("literal") != "" || !isTemplate(s) {
			return s, nil
		}
		template := oldSecretReference.ReplaceAllString(s, `${$1}`)
		missing := missingReferences(template, environ)
		for _, name := range missing {
			report(key, s, "refers to %s, which is not set (write ${%s:-} where it may be empty)", name, name)
		}
		if len(missing) > 0 {
			return s, nil
		}
		value, err := expand(ctx, template, environ)
		if err == nil && strings.ContainsRune(value, 0) {
			report(key, s, "expands to a value with a NUL character")
			return s, nil
		}
		if err == nil {
			// Relative paths were resolved when the file was read; what begins
			// with a reference shows only now whether it is absolute.
			value, err = grammarOf(tag).check(value, "", "")
		}
		if err != nil {
			report(key, s, "%v", err)
			return s, nil
		}
		return value, nil
	})
	if len(problems) > 0 {
		return expanded, &Error{problems}
	}
	return expanded, nil
}

// missingReferences lists the plain references of a template to variables that
// are unset or empty, each once. A value that does not parse has none: its
// expansion fails and says why.
func missingReferences(template string, environ []string) []string {
	var missing []string
	visit := func(node syntax.Node) bool {
		switch n := node.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp:
			return false // the shell's own scope: it may set what it reads
		case *syntax.ParamExp:
			name := n.Param.Value
			if hasDefault(n) || !syntax.ValidName(name) || isNonEmpty(environ, name) || slices.Contains(missing, name) {
				return true
			}
			missing = append(missing, name)
		}
		return true
	}
	// As a here-document, like the expansion itself: quotes are text.
	word, err := syntax.NewParser().Document(strings.NewReader(template))
	if err != nil {
		return nil
	}
	syntax.Walk(word, visit)
	return missing
}

// hasDefault says that a reference names what happens when the variable is unset.
func hasDefault(p *syntax.ParamExp) bool {
	if p.Exp == nil {
		return false
	}
	switch p.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull,
		syntax.ErrorUnset, syntax.ErrorUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		return true
	}
	return false
}

func isNonEmpty(environ []string, name string) bool {
	for _, pair := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value != ""
		}
	}
	return false
}
