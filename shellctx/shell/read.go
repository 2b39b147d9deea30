package shell

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// codeTimeout is the exit code of a read that ran out of time: 128 + SIGALRM.
const codeTimeout = 142

// readNeedsOurs tells whether read is called with options that the
// interpreter's does not know, such as those of `while read -r -d ” f`.
func readNeedsOurs(args []string) bool {
	for _, arg := range args[1:] {
		if len(arg) < 2 || arg[0] != '-' || arg == "--" {
			return false
		}
		if strings.ContainsAny(arg[1:], "dnNtuie") {
			return true
		}
		if strings.HasSuffix(arg, "p") {
			return false // its argument follows
		}
	}
	return false
}

// readOptions are those of bash's read.
type readOptions struct {
	raw     bool
	array   string
	delim   byte
	count   int  // characters; 0 is up to the delimiter
	exact   bool // -N: the delimiter is a character like others
	prompt  string
	timeout time.Duration // negative: none
	names   []string
}

func parseRead(args []string) (readOptions, error) {
	o := readOptions{delim: '\n', timeout: -1}
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		group := args[0][1:]
		args = args[1:]
		if group == "-" {
			break
		}
		for len(group) > 0 {
			flag := group[0]
			group = group[1:]
			switch flag {
			case 'r':
				o.raw = true
				continue
			case 's', 'e':
				continue // there is no terminal
			}
			if !strings.ContainsRune("adnNptui", rune(flag)) {
				return o, fmt.Errorf("-%c: invalid option", flag)
			}
			value := group
			group = ""
			if value == "" {
				if len(args) == 0 {
					return o, fmt.Errorf("-%c: option requires an argument", flag)
				}
				value, args = args[0], args[1:]
			}
			if err := o.set(flag, value); err != nil {
				return o, err
			}
		}
	}
	o.names = args
	for _, name := range append(o.names[:len(o.names):len(o.names)], o.array) {
		if name != "" && !syntax.ValidName(name) {
			return o, fmt.Errorf("`%s': not a valid identifier", name)
		}
	}
	return o, nil
}

func (o *readOptions) set(flag byte, value string) error {
	switch flag {
	case 'a':
		o.array = value
	case 'd':
		o.delim = 0
		if value != "" {
			o.delim = value[0]
		}
	case 'n', 'N':
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return fmt.Errorf("%s: invalid number", value)
		}
		o.count, o.exact = n, flag == 'N'
	case 'p':
		o.prompt = value
	case 't':
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil || seconds < 0 {
			return fmt.Errorf("%s: invalid timeout specification", value)
		}
		o.timeout = time.Duration(seconds * float64(time.Second))
	case 'u':
		if value != "0" {
			return fmt.Errorf("%s: invalid file descriptor: only 0 exists here", value)
		}
	}
	return nil
}

// readBuiltin is bash's read for the calls that readNeedsOurs names.
func readBuiltin(ctx context.Context, hc interp.HandlerContext, args []string) error {
	o, err := parseRead(args[1:])
	if err != nil {
		_, _ = fmt.Fprintf(hc.Stderr, "read: %v\n", err)
		return interp.ExitStatus(2)
	}
	if o.prompt != "" {
		_, _ = io.WriteString(hc.Stderr, o.prompt)
	}
	text, end := readUntil(ctx, hc.Stdin, o)
	if err := o.assign(ctx, hc, text); err != nil {
		return err
	}
	switch {
	case end == nil:
		return nil
	case errors.Is(end, os.ErrDeadlineExceeded) && ctx.Err() == nil:
		return interp.ExitStatus(codeTimeout)
	}
	return interp.ExitStatus(1)
}

// readUntil reads a byte at a time: what follows belongs to whoever reads next.
// Backslashes are kept for the splitting into fields, unless a delimiter
// follows them.
func readUntil(ctx context.Context, in io.Reader, o readOptions) (string, error) {
	file, ok := in.(*os.File)
	if !ok || file == nil {
		return "", io.EOF
	}
	if o.timeout >= 0 {
		_ = file.SetReadDeadline(time.Now().Add(o.timeout))
		defer func() { _ = file.SetReadDeadline(time.Time{}) }()
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = file.SetReadDeadline(time.Now())
		close(stopped)
	})
	defer func() {
		if !stop() {
			<-stopped
			_ = file.SetReadDeadline(time.Time{})
		}
	}()
	var line []byte
	var one [1]byte
	escaped := false
	for {
		if o.count > 0 && characters(line, o.raw) >= o.count {
			return string(line), nil
		}
		n, err := file.Read(one[:])
		if n == 0 {
			if err == nil {
				err = io.EOF
			}
			return string(line), err
		}
		b := one[0]
		switch {
		case escaped && b == '\n' && !o.raw:
			line = line[:len(line)-1] // a continued line
			escaped = false
		case b == o.delim && !escaped && !o.exact:
			return string(line), nil
		case b == 0:
			// A variable cannot hold it.
		default:
			line = append(line, b)
			escaped = b == '\\' && !escaped && !o.raw
		}
	}
}

// characters counts what has been read in full.
func characters(line []byte, raw bool) int {
	n := 0
	for len(line) > 0 {
		if !raw && line[0] == '\\' {
			if len(line) == 1 {
				break
			}
			line = line[1:]
		}
		if !utf8.FullRune(line) {
			break
		}
		_, size := utf8.DecodeRune(line)
		line = line[size:]
		n++
	}
	return n
}

func (o readOptions) assign(ctx context.Context, hc interp.HandlerContext, text string) error {
	cfg := &expand.Config{Env: hc.Env}
	if o.array != "" {
		var source strings.Builder
		fmt.Fprintf(&source, "%s=(", o.array)
		for _, field := range expand.ReadFields(cfg, text, -1, o.raw) {
			source.WriteString(singleQuoted(field) + " ")
		}
		source.WriteString(")")
		return hc.Builtin(ctx, []string{"eval", source.String()})
	}
	names := o.names
	if o.exact || len(names) == 0 {
		// No splitting, and no trimming.
		if !o.raw {
			text = withoutBackslashes(text)
		}
		if len(names) == 0 {
			names = []string{"REPLY"}
		}
		list := []assignment{{names[0], text}}
		for _, name := range names[1:] {
			list = append(list, assignment{name, ""})
		}
		return setVariables(ctx, hc, list...)
	}
	fields := expand.ReadFields(cfg, text, len(names), o.raw)
	var list []assignment
	for i, name := range names {
		value := ""
		if i < len(fields) {
			value = fields[i]
		}
		list = append(list, assignment{name, value})
	}
	return setVariables(ctx, hc, list...)
}

func withoutBackslashes(s string) string {
	var out bytes.Buffer
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			i++
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
