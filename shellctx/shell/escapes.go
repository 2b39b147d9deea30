package shell

import (
	"slices"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// unescapeFile spells backslashes as quotes where the interpreter takes a word as
// one string, in which it leaves them standing: values that are assigned, files
// of redirections, the word of a case, tests, and what ${name:-word} puts in. It
// tells whether anything changed. printable keeps to what means the same when it
// is printed and parsed again.
func unescapeFile(file *syntax.File, printable bool) bool {
	// Within double quotes and here-documents a backslash quotes less.
	within := make(map[*syntax.ParamExp]bool)
	mark := func(n syntax.Node) {
		syntax.Walk(n, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CmdSubst, *syntax.ProcSubst:
				return false
			case *syntax.ParamExp:
				within[n] = true
			}
			return true
		})
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DblQuoted:
			mark(n)
		case *syntax.Redirect:
			if n.Hdoc != nil {
				mark(n.Hdoc)
			}
		}
		return true
	})

	changed := false
	plain := func(w *syntax.Word) {
		if w != nil && unescapeWord(w, "") {
			changed = true
		}
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			plain(n.Value)
		case *syntax.Redirect:
			if n.Hdoc == nil {
				plain(n.Word)
			}
		case *syntax.CaseClause:
			plain(n.Word)
		case *syntax.UnaryTest:
			if w, ok := n.X.(*syntax.Word); ok {
				plain(w)
			}
		case *syntax.BinaryTest:
			if w, ok := n.X.(*syntax.Word); ok {
				plain(w)
			}
		case *syntax.ParamExp:
			var words []*syntax.Word
			if n.Repl != nil && (!within[n] || !printable) {
				plain(n.Repl.With)
			}
			if n.Exp != nil {
				switch n.Exp.Op {
				case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull,
					syntax.ErrorUnset, syntax.ErrorUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
					words = append(words, n.Exp.Word)
				}
			}
			for _, w := range words {
				if !within[n] {
					plain(w)
				} else if w != nil && !printable && unescapeWord(w, "$`\"\\}\n") {
					changed = true
				}
			}
		}
		return true
	})
	return changed
}

// unescapeWord takes the backslashes of a word's unquoted parts away, before
// every character, or before those of a set.
func unescapeWord(w *syntax.Word, before string) bool {
	if !slices.ContainsFunc(w.Parts, func(p syntax.WordPart) bool {
		l, ok := p.(*syntax.Lit)
		return ok && strings.Contains(l.Value, `\`)
	}) {
		return false
	}
	var parts []syntax.WordPart
	for _, part := range w.Parts {
		l, ok := part.(*syntax.Lit)
		if !ok {
			parts = append(parts, part)
			continue
		}
		rest := l.Value
		text := ""
		for rest != "" {
			i := strings.IndexByte(rest, '\\')
			if i < 0 || i+1 == len(rest) {
				text += rest
				break
			}
			text += rest[:i]
			_, size := utf8.DecodeRuneInString(rest[i+1:])
			escaped := rest[i+1 : i+1+size]
			rest = rest[i+1+len(escaped):]
			switch {
			case before != "" && !strings.Contains(before, escaped):
				text += `\` + escaped
				continue
			case escaped == "\n":
				continue // a line goes on
			}
			if text != "" {
				parts = append(parts, &syntax.Lit{ValuePos: l.ValuePos, ValueEnd: l.ValueEnd, Value: text})
				text = ""
			}
			parts = append(parts, &syntax.SglQuoted{Left: l.ValuePos, Right: l.ValueEnd, Value: escaped})
		}
		if text != "" {
			parts = append(parts, &syntax.Lit{ValuePos: l.ValuePos, ValueEnd: l.ValueEnd, Value: text})
		}
	}
	w.Parts = parts
	return true
}
