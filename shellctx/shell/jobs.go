package shell

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// The interpreter runs `X &` in a goroutine of which it tells nobody. So that
// background statements can be counted, waited for and ended, the syntax tree
// is rewritten before it runs, and only when it has any:
//
//	X &      __cellmux_job=$(__cellmux_new)
//	         { __cellmux_in=$__cellmux_job; X; } >JOB/$__cellmux_job &
//	         __cellmux_shell=$!
//	         __cellmux_pid=$(__cellmux_id $__cellmux_job $__cellmux_shell)
//	$!       $__cellmux_pid
//	A | B    { A; } >SCOPE | B
//	$(A)     $({ A; } >SCOPE)
//
// Opening JOB binds the statement to the job that was created just before; its
// close, which the interpreter does however the statement ends, is the job's
// end. A SCOPE's close waits for the jobs that print into the same pipe or
// buffer, as its reader would wait in bash.
const (
	varJob   = "__cellmux_job"
	varIn    = "__cellmux_in"
	varPID   = "__cellmux_pid"
	varShell = "__cellmux_shell"

	cmdNew    = "__cellmux_new"
	cmdID     = "__cellmux_id"
	cmdKill   = "__cellmux_kill"
	cmdJobs   = "__cellmux_jobs"
	cmdRead   = "__cellmux_read"
	cmdPrintf = "__cellmux_printf"
	cmdRefuse = "__cellmux_refuse"

	// Below a file nothing can exist, so that these name no file of the user's.
	pathJob   = "/dev/null/cellmux/job/"
	pathScope = "/dev/null/cellmux/scope"
)

// pidWait bounds how long `X &` waits for its program's PID, which is $!.
const pidWait = 50 * time.Millisecond

// job is a background statement that runs.
type job struct {
	id        int
	started   time.Time
	source    string
	simple    bool // one simple command: $! is its program's PID
	elsewhere bool // it prints into another place than its surroundings
	bound     bool // its goroutine runs
	stdout    io.Writer
	pid       int    // of its first program
	shellID   string // the interpreter's name for it, such as g1
	killed    int    // signal that it was ended with
	members   map[int]*leader
	ready     chan struct{} // closed once pid is known, or will not be
	done      chan struct{}
}

// instrument rewrites a file as described above, and spells what the
// interpreter does not know in words that it does: >| as >, ${10} as ${@:10:1},
// and a\ b where it would keep the backslash (unescapeFile).
// It tells whether anything changed.
func (x *execution) instrument(file *syntax.File, printable bool) bool {
	changed, background := unescapeFile(file, printable), false
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			background = background || n.Background || n.Disown
		case *syntax.BinaryCmd:
			x.pipes = x.pipes || n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		case *syntax.Redirect:
			if n.Op == syntax.RdrClob {
				n.Op, changed = syntax.RdrOut, true
			}
		case *syntax.ParamExp:
			changed = positional(n) || changed
		}
		return true
	})
	if !background {
		return changed
	}
	x.background = true
	var lists []*[]*syntax.Stmt
	var pipes []*syntax.BinaryCmd
	var substs []*syntax.CmdSubst
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.File:
			lists = append(lists, &n.Stmts)
		case *syntax.Block:
			lists = append(lists, &n.Stmts)
		case *syntax.Subshell:
			lists = append(lists, &n.Stmts)
		case *syntax.IfClause:
			lists = append(lists, &n.Cond, &n.Then)
		case *syntax.WhileClause:
			lists = append(lists, &n.Cond, &n.Do)
		case *syntax.ForClause:
			lists = append(lists, &n.Do)
		case *syntax.CaseItem:
			lists = append(lists, &n.Stmts)
		case *syntax.ProcSubst:
			lists = append(lists, &n.Stmts)
		case *syntax.CmdSubst:
			lists = append(lists, &n.Stmts)
			substs = append(substs, n)
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				pipes = append(pipes, n)
			}
		case *syntax.ParamExp:
			if n.Param != nil && n.Param.Value == "!" {
				n.Param = lit(varPID)
			}
		}
		return true
	})
	for _, list := range slices.Backward(lists) {
		*list = x.instrumentList(*list)
	}
	for _, n := range substs {
		// $(<file) is read by the interpreter itself, and starts nothing.
		if len(n.Stmts) > 0 && (len(n.Stmts) > 1 || n.Stmts[0].Cmd != nil) {
			n.Stmts = []*syntax.Stmt{scope(n.Stmts)}
		}
	}
	for _, n := range pipes {
		n.X = scope([]*syntax.Stmt{n.X})
	}
	return true
}

// positional spells a parameter beyond $9 as a slice of $@.
func positional(n *syntax.ParamExp) bool {
	if n.Param == nil || n.Short || n.Excl || n.Length || n.Width || n.Index != nil || n.Slice != nil || n.Repl != nil || n.Exp != nil {
		return false
	}
	if i, err := strconv.Atoi(n.Param.Value); err != nil || i < 10 {
		return false
	}
	n.Slice = &syntax.Slice{Offset: word(lit(n.Param.Value)), Length: word(lit("1"))}
	n.Param = lit("@")
	return true
}

func (x *execution) instrumentList(list []*syntax.Stmt) []*syntax.Stmt {
	if !slices.ContainsFunc(list, func(st *syntax.Stmt) bool { return st.Background || st.Disown }) {
		return list
	}
	var out []*syntax.Stmt
	for _, st := range list {
		if !st.Background && !st.Disown {
			out = append(out, st)
			continue
		}
		inner := *st
		inner.Background, inner.Disown = false, false
		inner.Semicolon = syntax.Pos{}
		_, simple := inner.Cmd.(*syntax.CallExpr)
		elsewhere := slices.ContainsFunc(inner.Redirs, redirectsStdout)
		var source strings.Builder
		_ = syntax.NewPrinter(syntax.SingleLine(true)).Print(&source, &inner)
		out = append(out,
			assign(varJob, substitute(call(word(lit(cmdNew)), quoted(source.String()), quoted(strconv.FormatBool(simple)), quoted(strconv.FormatBool(elsewhere))))),
			&syntax.Stmt{
				Position:   st.Position,
				Background: true,
				Cmd: &syntax.Block{Stmts: []*syntax.Stmt{
					assign(varIn, word(param(varJob))),
					&inner,
				}},
				Redirs: []*syntax.Redirect{{Op: syntax.RdrOut, Word: word(lit(pathJob), param(varJob))}},
			},
			// Apart, since a substitution is a subshell, which has no $! of ours.
			assign(varShell, word(param("!"))),
			assign(varPID, substitute(call(word(lit(cmdID)), word(param(varJob)), word(param(varShell))))),
		)
	}
	return out
}

// redirectsStdout tells whether a redirection takes standard output away.
func redirectsStdout(rd *syntax.Redirect) bool {
	switch rd.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.DplOut:
		return rd.N == nil || rd.N.Value == "1"
	case syntax.RdrAll, syntax.AppAll:
		return true
	}
	return false
}

// scope wraps statements so that their end waits for the jobs in them.
func scope(stmts []*syntax.Stmt) *syntax.Stmt {
	return &syntax.Stmt{
		Position: stmts[0].Position,
		Cmd:      &syntax.Block{Stmts: stmts},
		Redirs:   []*syntax.Redirect{{Op: syntax.RdrOut, Word: word(lit(pathScope))}},
	}
}

func lit(s string) *syntax.Lit { return &syntax.Lit{Value: s} }

func word(parts ...syntax.WordPart) *syntax.Word { return &syntax.Word{Parts: parts} }

func quoted(s string) *syntax.Word { return word(&syntax.SglQuoted{Value: s}) }

func param(name string) *syntax.ParamExp {
	return &syntax.ParamExp{Short: true, Param: lit(name)}
}

func call(words ...*syntax.Word) *syntax.Stmt {
	return &syntax.Stmt{Cmd: &syntax.CallExpr{Args: words}}
}

func substitute(st *syntax.Stmt) *syntax.Word {
	return word(&syntax.CmdSubst{Stmts: []*syntax.Stmt{st}})
}

func assign(name string, value *syntax.Word) *syntax.Stmt {
	return &syntax.Stmt{Cmd: &syntax.CallExpr{Assigns: []*syntax.Assign{{Name: lit(name), Value: value}}}}
}

// internal finds the commands that the rewritten tree and call use.
func (x *execution) internal(name string) (func(context.Context, interp.HandlerContext, []string) error, bool) {
	switch name {
	case cmdNew:
		return x.newJob, true
	case cmdID:
		return x.jobID, true
	case cmdKill:
		return x.kill, true
	case cmdJobs:
		return x.listJobs, true
	case cmdRead:
		return readBuiltin, true
	case "jq":
		return jqBuiltin, true
	case cmdRefuse:
		return refuse, true
	case cmdPrintf:
		return printfBuiltin, true
	}
	return nil, false
}

func (x *execution) newJob(_ context.Context, hc interp.HandlerContext, args []string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.nextJob++
	j := &job{
		id:        x.nextJob,
		started:   time.Now(),
		source:    args[1],
		simple:    args[2] == "true",
		elsewhere: args[3] == "true",
		members:   make(map[int]*leader),
		ready:     make(chan struct{}),
		done:      make(chan struct{}),
	}
	x.jobs[j.id] = j
	x.named[j.id] = j
	_, _ = fmt.Fprint(hc.Stdout, j.id)
	return nil
}

// jobID prints what $! is: the PID of a background program, else a name that
// kill and wait understand.
func (x *execution) jobID(ctx context.Context, hc interp.HandlerContext, args []string) error {
	id, _ := strconv.Atoi(args[1])
	x.mu.Lock()
	j := x.named[id]
	if j == nil {
		x.mu.Unlock()
		return nil
	}
	if len(args) > 2 {
		j.shellID = args[2]
	}
	x.mu.Unlock()
	if j.simple {
		timer := time.NewTimer(pidWait)
		defer timer.Stop()
		select {
		case <-j.ready:
		case <-j.done:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if j.simple && j.pid != 0 {
		_, _ = fmt.Fprint(hc.Stdout, j.pid)
	} else {
		j.pid = 0
		_, _ = fmt.Fprintf(hc.Stdout, "job%d", j.id)
	}
	return nil
}

// jobNamed returns the job that $! named. The lock is held.
func (x *execution) jobNamed(name string) *job {
	for _, j := range x.named {
		if name == fmt.Sprintf("job%d", j.id) || j.pid != 0 && name == strconv.Itoa(j.pid) ||
			name == fmt.Sprintf("%%%d", j.id) {
			return j
		}
	}
	return nil
}

// joinJob books a program under the background statement that started it. The
// lock is held.
func (x *execution) joinJob(l *leader, env expand.Environ) {
	id, err := strconv.Atoi(env.Get(varIn).String())
	if err != nil {
		return
	}
	j := x.named[id]
	if j == nil {
		return
	}
	j.members[l.pid] = l
	if j.pid == 0 && j.simple {
		j.pid = l.pid
		close(j.ready)
	}
	if j.killed != 0 {
		signalGroup(l.pid, j.killed)
	}
}

// open is the interpreter's open handler: it knows the two paths above, and
// keeps an open of a named pipe from blocking past the end of the context.
func (x *execution) open(ctx context.Context, path string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	hc := interp.HandlerCtx(ctx)
	if id, ok := strings.CutPrefix(path, pathJob); ok {
		n, _ := strconv.Atoi(id)
		return x.bind(n, hc.Stdout), nil
	}
	if path == pathScope {
		under := unwrap(hc.Stdout)
		return &tap{under: hc.Stdout, close: func() { x.waitFor(under) }}, nil
	}
	return openFile(ctx, hc.Dir, path, flag, perm)
}

// bind makes the calling goroutine's statement the job's.
func (x *execution) bind(id int, stdout io.Writer) io.ReadWriteCloser {
	x.mu.Lock()
	defer x.mu.Unlock()
	j := x.named[id]
	if j == nil {
		return &tap{under: stdout, close: func() {}}
	}
	j.bound = true
	if !j.elsewhere {
		j.stdout = unwrap(stdout)
	}
	return &tap{under: stdout, close: func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		close(j.done)
		delete(x.jobs, id)
		x.shrunk()
	}}
}

// waitFor blocks until no job prints into w any more, or the context ends.
func (x *execution) waitFor(w io.Writer) {
	for {
		x.mu.Lock()
		busy, changed := false, x.changed
		for _, j := range x.jobs {
			busy = busy || !j.bound || same(j.stdout, w)
		}
		x.mu.Unlock()
		if !busy {
			return
		}
		select {
		case <-changed:
		case <-x.ctx.Done():
			return
		}
	}
}

// tap passes writes on and tells when the interpreter is done with it.
type tap struct {
	under io.Writer
	close func()
}

func (t *tap) Read([]byte) (int, error)    { return 0, io.EOF }
func (t *tap) Write(p []byte) (int, error) { return t.under.Write(p) }
func (t *tap) Close() error                { t.close(); return nil }

// unwrap takes taps away.
func unwrap(w io.Writer) io.Writer {
	for {
		t, ok := w.(*tap)
		if !ok {
			return w
		}
		w = t.under
	}
}

// programWriter is what a program is given: a file where there can be one, so
// that it writes into the pipe itself.
func programWriter(w io.Writer) io.Writer {
	w = unwrap(w)
	if g, ok := w.(*gate); ok {
		if f := g.file(); f != nil {
			return f
		}
	}
	return w
}

// readOn lets what a program writes into the pipe of a stream arrive.
func readOn(w io.Writer) {
	if g, ok := unwrap(w).(*gate); ok {
		g.read()
	}
}
