package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// printfBuiltin is bash's printf, of which the interpreter's knows too little:
// -v, widths, precisions, floats and %q are in every other script. %(format)T
// is missing.
func printfBuiltin(ctx context.Context, hc interp.HandlerContext, args []string) error {
	args = args[1:]
	name := ""
	if len(args) > 1 && args[0] == "-v" {
		name, args = args[1], args[2:]
		if !syntax.ValidName(name) {
			_, _ = fmt.Fprintf(hc.Stderr, "printf: %q: not a valid identifier\n", name)
			return interp.ExitStatus(2)
		}
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		_, _ = fmt.Fprintln(hc.Stderr, "printf: usage: printf [-v var] format [arguments]")
		return interp.ExitStatus(2)
	}
	p := &printer{args: args[1:]}
	p.format(args[0])
	for _, problem := range p.problems {
		_, _ = fmt.Fprintf(hc.Stderr, "printf: %s\n", problem)
	}
	if name != "" {
		if err := setVariables(ctx, hc, assignment{name, p.out.String()}); err != nil {
			return err
		}
	} else if _, err := io.WriteString(hc.Stdout, p.out.String()); err != nil {
		return interp.ExitStatus(1)
	}
	if len(p.problems) > 0 {
		return interp.ExitStatus(1)
	}
	return nil
}

// assignment gives a variable a value.
type assignment struct{ name, value string }

// setVariables assigns in the scope that the interpreter is in, for which its
// eval is the one way.
func setVariables(ctx context.Context, hc interp.HandlerContext, list ...assignment) error {
	var source strings.Builder
	for _, a := range list {
		fmt.Fprintf(&source, "%s=%s\n", a.name, singleQuoted(a.value))
	}
	return hc.Builtin(ctx, []string{"eval", source.String()})
}

func singleQuoted(s string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, "\x00", ""), "'", `'\''`) + "'"
}

// printer formats arguments.
type printer struct {
	args     []string
	out      strings.Builder
	problems []string
	used     bool // an argument was asked for in this round
	stop     bool // \c, or a format that cannot go on
}

func (p *printer) fail(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// format uses the format again and again until no argument is left.
func (p *printer) format(format string) {
	for {
		p.used = false
		p.round(format)
		if p.stop || !p.used || len(p.args) == 0 {
			return
		}
	}
}

func (p *printer) round(format string) {
	for i := 0; i < len(format) && !p.stop; {
		switch c := format[i]; c {
		case '\\':
			text, n, end := unescape(format[i:], false)
			p.out.WriteString(text)
			i += n
			p.stop = end
		case '%':
			i += p.conversion(format[i:])
		default:
			p.out.WriteByte(c)
			i++
		}
	}
}

func (p *printer) next() string {
	p.used = true
	if len(p.args) == 0 {
		return ""
	}
	arg := p.args[0]
	p.args = p.args[1:]
	return arg
}

// conversion reads one % of a format and returns its length.
func (p *printer) conversion(format string) int {
	i := 1
	take := func(set string) string {
		begin := i
		for i < len(format) && strings.IndexByte(set, format[i]) >= 0 {
			i++
		}
		return format[begin:i]
	}
	number := func() string {
		if i < len(format) && format[i] == '*' {
			i++
			return strconv.FormatInt(p.integer(p.next()), 10)
		}
		return take("0123456789")
	}
	flags := take("-+ 0#'")
	width := number()
	if rest, ok := strings.CutPrefix(width, "-"); ok {
		flags, width = flags+"-", rest
	}
	precision := ""
	if i < len(format) && format[i] == '.' {
		i++
		precision = "." + number()
		if strings.HasPrefix(precision, ".-") {
			precision = ""
		} else if precision == "." {
			precision = ".0"
		}
	}
	if len(width) > 6 || len(precision) > 6 {
		// A width of a gigabyte is an attack on memory, not a format.
		p.fail("%%%s%s: too wide", width, precision)
		p.stop = true
		return len(format)
	}
	take("hlLjzt")
	if i >= len(format) {
		p.fail("%q: missing format character", format)
		p.stop = true
		return len(format)
	}
	verb := format[i]
	i++
	spec := "%" + strings.ReplaceAll(flags, "'", "") + width + precision
	put := func(verb string, value any) { fmt.Fprintf(&p.out, spec+verb, value) }
	text := func(s string) {
		// Go counts characters, printf(1) bytes.
		if precision != "" {
			if n, err := strconv.Atoi(precision[1:]); err == nil && n < len(s) {
				s = s[:n]
			}
		}
		pad := ""
		if n, err := strconv.Atoi(width); err == nil && n > len(s) {
			pad = strings.Repeat(" ", n-len(s))
		}
		if strings.Contains(flags, "-") {
			p.out.WriteString(s + pad)
		} else {
			p.out.WriteString(pad + s)
		}
	}
	switch verb {
	case '%':
		p.out.WriteByte('%')
	case 's':
		text(p.next())
	case 'c':
		arg := p.next()
		text(arg[:min(1, len(arg))])
	case 'b':
		s, end := unescapeAll(p.next())
		text(s)
		p.stop = end
	case 'q':
		text(backslashed(p.next()))
	case 'd', 'i':
		put("d", p.integer(p.next()))
	case 'u':
		put("d", uint64(p.integer(p.next())))
	case 'o', 'x', 'X':
		put(string(verb), uint64(p.integer(p.next())))
	case 'e', 'E', 'f', 'F', 'g', 'G':
		put(string(verb), p.float(p.next()))
	default:
		p.fail("`%c': invalid format character", verb)
		p.stop = true
	}
	return i
}

// integer reads a number as C does; 'x is the code of x.
func (p *printer) integer(s string) int64 {
	if s == "" {
		return 0
	}
	if s[0] == '\'' || s[0] == '"' {
		r, _ := utf8.DecodeRuneInString(s[1:])
		if len(s) == 1 {
			return 0
		}
		return int64(r)
	}
	trimmed := strings.TrimLeft(s, " \t\n")
	digits := trimmed
	for len(digits) > 0 {
		n, err := strconv.ParseInt(cInteger(digits), 0, 64)
		if err == nil {
			if digits != trimmed {
				p.fail("%s: invalid number", s)
			}
			return n
		}
		if errors.Is(err, strconv.ErrRange) {
			if u, err := strconv.ParseUint(cInteger(digits), 0, 64); err == nil {
				return int64(u)
			}
			p.fail("%s: Numerical result out of range", s)
			return n
		}
		digits = digits[:len(digits)-1]
	}
	p.fail("%s: invalid number", s)
	return 0
}

// cInteger keeps Go from reading what C does not: 0b1, 0o7, 1_000.
func cInteger(s string) string {
	if strings.ContainsAny(s, "_bBoO") && !strings.HasPrefix(strings.TrimLeft(s, "+-"), "0x") && !strings.HasPrefix(strings.TrimLeft(s, "+-"), "0X") {
		return "?"
	}
	if strings.Contains(s, "_") {
		return "?"
	}
	return s
}

func (p *printer) float(s string) float64 {
	if s == "" {
		return 0
	}
	if s[0] == '\'' || s[0] == '"' {
		return float64(p.integer(s))
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		p.fail("%s: invalid number", s)
	}
	return f
}

// unescapeAll reads the escapes of %b; end tells of \c.
func unescapeAll(s string) (text string, end bool) {
	var out strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			out.WriteByte(s[i])
			i++
			continue
		}
		part, n, end := unescape(s[i:], true)
		out.WriteString(part)
		if end {
			return out.String(), true
		}
		i += n
	}
	return out.String(), false
}

// unescape reads the escape at the front of s and returns its length. %b knows
// \0NNN and \c beside what a format knows.
func unescape(s string, b bool) (text string, n int, end bool) {
	if len(s) < 2 {
		return s, len(s), false
	}
	digits := func(from, most, base int) (uint64, int) {
		to := from
		for to < len(s) && to < from+most && isDigit(s[to], base) {
			to++
		}
		v, _ := strconv.ParseUint(s[from:to], base, 32)
		return v, to
	}
	switch c := s[1]; c {
	case 'a':
		return "\a", 2, false
	case 'b':
		return "\b", 2, false
	case 'e', 'E':
		return "\x1b", 2, false
	case 'f':
		return "\f", 2, false
	case 'n':
		return "\n", 2, false
	case 'r':
		return "\r", 2, false
	case 't':
		return "\t", 2, false
	case 'v':
		return "\v", 2, false
	case '\\', '"', '\'':
		if b && c != '\\' {
			return s[:2], 2, false
		}
		return string(c), 2, false
	case 'c':
		if b {
			return "", 2, true
		}
	case 'x':
		if v, to := digits(2, 2, 16); to > 2 {
			return string([]byte{byte(v)}), to, false
		}
	case 'u', 'U':
		most := 4
		if c == 'U' {
			most = 8
		}
		if v, to := digits(2, most, 16); to > 2 {
			return string(rune(v)), to, false
		}
	case '0', '1', '2', '3', '4', '5', '6', '7':
		from, most := 1, 3
		if b && c == '0' {
			most = 4
		}
		v, to := digits(from, most, 8)
		return string([]byte{byte(v)}), to, false
	}
	return s[:2], 2, false
}

func isDigit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// backslashed quotes as bash's %q does.
func backslashed(s string) string {
	if s == "" {
		return "''"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) }) {
		var out strings.Builder
		out.WriteString("$'")
		for i := range len(s) {
			switch c := s[i]; {
			case c == '\n':
				out.WriteString(`\n`)
			case c == '\t':
				out.WriteString(`\t`)
			case c == '\r':
				out.WriteString(`\r`)
			case c == '\a':
				out.WriteString(`\a`)
			case c == 0x1b:
				out.WriteString(`\E`)
			case c == '\'' || c == '\\':
				out.WriteByte('\\')
				out.WriteByte(c)
			case c < 0x20 || c == 0x7f:
				fmt.Fprintf(&out, `\%03o`, c)
			default:
				out.WriteByte(c)
			}
		}
		out.WriteString("'")
		return out.String()
	}
	var out strings.Builder
	for i, r := range s {
		if strings.ContainsRune(" \t'\"\\|&;()<>!{}*[]?^$`,", r) || i == 0 && (r == '#' || r == '~') {
			out.WriteByte('\\')
		}
		out.WriteRune(r)
	}
	return out.String()
}
