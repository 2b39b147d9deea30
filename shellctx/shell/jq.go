package shell

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/itchyny/gojq"
	"mvdan.cc/sh/v3/interp"
)

// Exit codes of jq(1).
const (
	jqFalse   = 1 // -e: the last output was false or null
	jqUsage   = 2 // also input that cannot be read
	jqCompile = 3
	jqNothing = 4 // -e: there was no output
	jqRuntime = 5
)

const jqHelp = `usage: jq [options] FILTER [FILE...]
  -n  no input: run the filter once with null     -r  strings as they are, without quotes
  -R  input lines as strings                      -j  as -r, and no newlines
  -s  all input as one array                      -a  escape what is not ASCII
  -c  one line for each output                    -S  sort keys (they always are)
  -e  exit code from the last output              -f FILE  read the filter from a file
  --tab, --indent N                               --arg NAME VALUE, --argjson NAME JSON
  --slurpfile NAME FILE, --rawfile NAME FILE      --args, --jsonargs: the rest is $ARGS.positional
This is cellmux's own jq (gojq); /usr/bin/jq, if there is one, is run by its path.
`

// jqOptions are what jq was called with.
type jqOptions struct {
	null, rawInput, slurp         bool
	compact, raw, join, ascii     bool
	exit, help                    bool
	indent                        string
	filter                        string
	hasFilter                     bool
	fromFile                      string
	files                         []string
	names                         []string
	values                        []any
	positional                    []any
	positionals, positionalValues bool
}

// jqFailure is an error with jq's exit code for it.
type jqFailure struct {
	code uint8
	err  error
}

func (f jqFailure) Error() string { return f.err.Error() }

func jqFail(code uint8, format string, args ...any) error {
	return jqFailure{code, fmt.Errorf(format, args...)}
}

// jqBuiltin runs jq in this process: files are relative to the shell's
// directory, and env and $ENV are the shell's.
func jqBuiltin(ctx context.Context, hc interp.HandlerContext, args []string) error {
	code, err := jq(ctx, hc, args[1:])
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		_, _ = fmt.Fprintf(hc.Stderr, "jq: %v\n", err)
		if failure, ok := errors.AsType[jqFailure](err); ok {
			code = failure.code
		} else {
			code = jqRuntime
		}
	}
	if code != 0 {
		return interp.ExitStatus(code)
	}
	return nil
}

func jq(ctx context.Context, hc interp.HandlerContext, args []string) (uint8, error) {
	o := jqOptions{indent: "  "}
	if err := o.parse(hc, args); err != nil {
		return 0, err
	}
	if o.help {
		_, _ = io.WriteString(hc.Stdout, jqHelp)
		return 0, nil
	}
	query, err := gojq.Parse(o.filter)
	if err != nil {
		return 0, jqFail(jqCompile, "compile: %w", err)
	}
	input := &jqInput{ctx: ctx, hc: hc, options: &o, files: o.files}
	defer input.close()
	env := environ(hc.Env, hc.Dir)
	named := map[string]any{}
	for i, name := range o.names {
		named[name[1:]] = o.values[i]
	}
	variables := append(append([]string(nil), o.names...), "$ARGS")
	values := append(append([]any(nil), o.values...), map[string]any{"named": named, "positional": append([]any{}, o.positional...)})
	code, err := gojq.Compile(query,
		gojq.WithEnvironLoader(func() []string { return env }),
		gojq.WithVariables(variables),
		gojq.WithInputIter(input))
	if err != nil {
		return 0, jqFail(jqCompile, "compile: %w", err)
	}
	result := uint8(jqNothing)
	run := func(value any) error {
		iter := code.RunWithContext(ctx, value, values...)
		for {
			v, ok := iter.Next()
			if !ok {
				return nil
			}
			if err, ok := v.(error); ok {
				if halt, ok := errors.AsType[*gojq.HaltError](err); ok && halt.Value() == nil {
					return jqFailure{uint8(halt.ExitCode()), errHalt}
				}
				return jqFail(jqRuntime, "%w", err)
			}
			result = 0
			if v == nil || v == false {
				result = jqFalse
			}
			if err := o.write(hc.Stdout, v); err != nil {
				return err
			}
		}
	}
	var failed error
	if o.null {
		failed = run(nil)
	} else {
		for ctx.Err() == nil {
			v, ok := input.Next()
			if !ok {
				break
			}
			if err, ok := v.(error); ok {
				return 0, err
			}
			if err := run(v); err != nil {
				failed = err
				if failure, ok := errors.AsType[jqFailure](err); !ok || failure.code != jqRuntime {
					break
				}
				// jq goes on with the next input.
				if input.peek() {
					_, _ = fmt.Fprintf(hc.Stderr, "jq: %v\n", err)
				}
			}
		}
	}
	if failed != nil {
		if errors.Is(failed.(jqFailure).err, errHalt) {
			return failed.(jqFailure).code, nil
		}
		return 0, failed
	}
	if o.exit {
		return result, nil
	}
	return 0, nil
}

var errHalt = errors.New("halt")

func (o *jqOptions) parse(hc interp.HandlerContext, args []string) error {
	next := func(flag string) (string, error) {
		if len(args) == 0 {
			return "", jqFail(jqUsage, "%s needs a value; see jq -h", flag)
		}
		v := args[0]
		args = args[1:]
		return v, nil
	}
	options := true
	for len(args) > 0 {
		word := args[0]
		args = args[1:]
		switch {
		case options && word == "--":
			options = false
		case options && strings.HasPrefix(word, "--"):
			if err := o.long(hc, word[2:], next); err != nil {
				return err
			}
		case options && len(word) > 1 && word[0] == '-':
			for i, letter := range word[1:] {
				switch letter {
				case 'n':
					o.null = true
				case 'R':
					o.rawInput = true
				case 's':
					o.slurp = true
				case 'c':
					o.compact = true
				case 'r':
					o.raw = true
				case 'j':
					o.raw, o.join = true, true
				case 'a':
					o.ascii = true
				case 'e':
					o.exit = true
				case 'S', 'M':
				case 'h':
					o.help = true
					return nil
				case 'f':
					if i != len(word)-2 {
						return jqFail(jqUsage, "-f takes a file: it stands last in %s", word)
					}
					file, err := next("-f")
					if err != nil {
						return err
					}
					o.fromFile = file
				default:
					return jqFail(jqUsage, "unknown option -%c; see jq -h", letter)
				}
			}
		case !o.hasFilter && o.fromFile == "":
			o.filter, o.hasFilter = word, true
		case o.positionals:
			o.positional = append(o.positional, word)
		case o.positionalValues:
			v, err := jqDecode(strings.NewReader(word))
			if err != nil {
				return jqFail(jqUsage, "--jsonargs: %q is no JSON: %w", word, err)
			}
			o.positional = append(o.positional, v)
		default:
			o.files = append(o.files, word)
		}
	}
	if o.fromFile != "" {
		data, err := os.ReadFile(within(hc.Dir, o.fromFile))
		if err != nil {
			return jqFail(jqUsage, "%w", err)
		}
		if o.hasFilter { // jq -f FILE INPUT: the first operand was a file after all
			o.files = append([]string{o.filter}, o.files...)
		}
		o.filter, o.hasFilter = string(data), true
	}
	if !o.hasFilter {
		return jqFail(jqUsage, "a filter is missing; see jq -h")
	}
	return nil
}

func (o *jqOptions) long(hc interp.HandlerContext, name string, next func(string) (string, error)) error {
	define := func(name string, value any) {
		o.names = append(o.names, "$"+name)
		o.values = append(o.values, value)
	}
	two := func() (a, b string, err error) {
		if a, err = next("--" + name); err == nil {
			b, err = next("--" + name)
		}
		return a, b, err
	}
	switch name {
	case "null-input":
		o.null = true
	case "raw-input":
		o.rawInput = true
	case "slurp":
		o.slurp = true
	case "compact-output":
		o.compact = true
	case "raw-output":
		o.raw = true
	case "join-output":
		o.raw, o.join = true, true
	case "ascii-output":
		o.ascii = true
	case "exit-status":
		o.exit = true
	case "sort-keys", "monochrome-output", "unbuffered":
	case "tab":
		o.indent = "\t"
	case "help":
		o.help = true
	case "args":
		o.positionals, o.positionalValues = true, false
	case "jsonargs":
		o.positionals, o.positionalValues = false, true
	case "indent":
		v, err := next("--indent")
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(v)
		if err != nil || n < 0 || n > 7 {
			return jqFail(jqUsage, "--indent takes 0 to 7, not %q", v)
		}
		o.indent, o.compact = strings.Repeat(" ", n), n == 0
	case "from-file":
		v, err := next("--from-file")
		if err != nil {
			return err
		}
		o.fromFile = v
	case "arg", "argjson", "slurpfile", "rawfile":
		variable, v, err := two()
		if err != nil {
			return err
		}
		switch name {
		case "arg":
			define(variable, v)
		case "argjson":
			value, err := jqDecode(strings.NewReader(v))
			if err != nil {
				return jqFail(jqUsage, "--argjson %s: %q is no JSON: %w", variable, v, err)
			}
			define(variable, value)
		default:
			data, err := os.ReadFile(within(hc.Dir, v))
			if err != nil {
				return jqFail(jqUsage, "--%s %s: %w", name, variable, err)
			}
			if name == "rawfile" {
				define(variable, string(data))
				break
			}
			all, err := jqDecodeAll(bytes.NewReader(data))
			if err != nil {
				return jqFail(jqUsage, "--slurpfile %s: %w", variable, err)
			}
			define(variable, all)
		}
	default:
		return jqFail(jqUsage, "unknown option --%s; see jq -h", name)
	}
	return nil
}

func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func (o *jqOptions) write(w io.Writer, v any) error {
	if s, ok := v.(string); ok && o.raw {
		return o.end(w, []byte(s))
	}
	data, err := gojq.Marshal(v)
	if err != nil {
		return jqFail(jqRuntime, "%w", err)
	}
	if !o.compact {
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, data, "", o.indent); err != nil {
			return jqFail(jqRuntime, "%w", err)
		}
		data = pretty.Bytes()
	}
	if o.ascii {
		data = asciiJSON(data)
	}
	return o.end(w, data)
}

func (o *jqOptions) end(w io.Writer, data []byte) error {
	if !o.join {
		data = append(data, '\n')
	}
	if _, err := w.Write(data); err != nil {
		return jqFail(jqUsage, "%w", err)
	}
	return nil
}

func asciiJSON(data []byte) []byte {
	var out []byte
	for _, r := range string(data) {
		switch {
		case r < 0x80:
			out = append(out, byte(r))
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

// jqInput hands out the inputs, for the main loop and for input and inputs.
type jqInput struct {
	ctx     context.Context
	hc      interp.HandlerContext
	options *jqOptions
	files   []string

	opened  bool
	reader  io.Reader
	closers []io.Closer
	values  *json.Decoder
	lines   *lineReader
	slurped bool
	ahead   []any
}

var _ gojq.Iter = (*jqInput)(nil)

func (in *jqInput) close() {
	for _, c := range in.closers {
		_ = c.Close()
	}
}

func (in *jqInput) open() error {
	if in.opened {
		return nil
	}
	in.opened = true
	if len(in.files) == 0 {
		in.reader = strings.NewReader("")
		if f, ok := in.hc.Stdin.(*os.File); ok && f != nil {
			in.reader = f
			stop := context.AfterFunc(in.ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
			in.closers = append(in.closers, closerFunc(func() error { stop(); return nil }))
		}
	} else {
		var all []io.Reader
		for _, name := range in.files {
			f, err := os.Open(within(in.hc.Dir, name))
			if err != nil {
				return jqFail(jqUsage, "%w", err)
			}
			in.closers = append(in.closers, f)
			all = append(all, f)
		}
		in.reader = io.MultiReader(all...)
	}
	if in.options.rawInput {
		in.lines = &lineReader{from: in.reader}
	} else {
		in.values = json.NewDecoder(in.reader)
		in.values.UseNumber()
	}
	return nil
}

// peek tells whether there is more.
func (in *jqInput) peek() bool {
	v, ok := in.Next()
	if ok {
		in.ahead = append(in.ahead, v)
	}
	return ok
}

// Next implements gojq.Iter.
func (in *jqInput) Next() (any, bool) {
	if len(in.ahead) > 0 {
		v := in.ahead[0]
		in.ahead = in.ahead[1:]
		return v, true
	}
	if err := in.open(); err != nil {
		return err, true
	}
	switch {
	case in.options.slurp && in.slurped:
		return nil, false
	case in.options.slurp && in.options.rawInput:
		in.slurped = true
		data, err := io.ReadAll(in.reader)
		if err != nil {
			return jqFail(jqUsage, "%w", err), true
		}
		return string(data), true
	case in.options.slurp:
		in.slurped = true
		all := []any{}
		for {
			v, ok := in.one()
			if !ok {
				return all, true
			}
			if err, failed := v.(error); failed {
				return err, true
			}
			all = append(all, v)
		}
	}
	return in.one()
}

func (in *jqInput) one() (any, bool) {
	if in.options.rawInput {
		line, ok, err := in.lines.next()
		if err != nil {
			return jqFail(jqUsage, "%w", err), true
		}
		return line, ok
	}
	var v any
	switch err := in.values.Decode(&v); {
	case errors.Is(err, io.EOF):
		return nil, false
	case err != nil:
		return jqFail(jqUsage, "input is no JSON: %w", err), true
	}
	return jqNumbers(v), true
}

// lineReader reads lines without their ends.
type lineReader struct {
	from io.Reader
	buf  []byte
	end  bool
}

func (r *lineReader) next() (string, bool, error) {
	for {
		if i := bytes.IndexByte(r.buf, '\n'); i >= 0 {
			line := string(r.buf[:i])
			r.buf = r.buf[i+1:]
			return line, true, nil
		}
		if r.end {
			line := string(r.buf)
			r.buf = nil
			return line, line != "", nil
		}
		chunk := make([]byte, 32<<10)
		n, err := r.from.Read(chunk)
		r.buf = append(r.buf, chunk[:n]...)
		switch {
		case errors.Is(err, io.EOF):
			r.end = true
		case err != nil:
			return "", false, err
		}
	}
}

func jqDecode(r io.Reader) (any, error) {
	all, err := jqDecodeAll(r)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("%d values where one is expected", len(all))
	}
	return all[0], nil
}

func jqDecodeAll(r io.Reader) ([]any, error) {
	dec := json.NewDecoder(r)
	dec.UseNumber()
	all := []any{}
	for {
		var v any
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, jqNumbers(v))
	}
}

// jqNumbers gives numbers the types that gojq knows; whole numbers stay exact,
// whatever their size.
func jqNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n
		}
		if !strings.ContainsAny(v.String(), ".eE") {
			if n, ok := new(big.Int).SetString(v.String(), 10); ok {
				return n
			}
		}
		f, _ := v.Float64()
		return f
	case []any:
		for i := range v {
			v[i] = jqNumbers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = jqNumbers(v[k])
		}
	}
	return v
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }
