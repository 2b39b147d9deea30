package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"cellmux/cell/lock"
	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/agent"
	"cellmux/shellctx/convo"
)

// Turns runs headless turns: one turn of a slot's agent without a terminal, in
// the slot's conversation, where its cell runs. It is a convo.HeadlessTransport,
// safe for concurrent use once Of has been called.
type Turns struct {
	runner proc.Runner
	opener *engine.Opener
	agents *agent.Set
	fleet  *Fleet

	silence time.Duration
}

var _ convo.HeadlessTransport = (*Turns)(nil)

// NewTurns returns a transport that refuses every turn until Of.
func NewTurns(runner proc.Runner, opener *engine.Opener, agents *agent.Set) *Turns {
	return &Turns{runner: runner, opener: opener, agents: agents, silence: turnSilence}
}

// Of says whose slots the turns belong to. The fleet needs the conversations,
// and they the turns, so this comes last.
func (t *Turns) Of(f *Fleet) { t.fleet = f }

// turnGrace is how long an agent may take to save its conversation after an
// interrupt.
const turnGrace = 5 * time.Second

// turnSilence is how long a turn may print nothing before it is ended: codex
// waits for ever for a network that is not there, opencode tries again for as
// long as its provider refuses. A command that a turn runs may be silent for long.
const turnSilence = 20 * time.Minute

var errSilent = errors.New("the turn was silent for too long")

// alarm is a writer that puts the end of a silent turn off.
type alarm struct {
	timer *time.Timer
	limit time.Duration
}

func (a alarm) Write(p []byte) (int, error) {
	a.timer.Reset(a.limit)
	return len(p), nil
}

// stderrKept is how much of the end of an agent's talk an error may quote.
const stderrKept = 4 << 10

// Run implements convo.HeadlessTransport. The prompt goes in over standard
// input, which is closed then: no agent waits for a terminal.
func (t *Turns) Run(ctx context.Context, target convo.Target, text string, emit func(string)) (convo.Turn, error) {
	refuse := func(err error) (convo.Turn, error) {
		return convo.Turn{}, fmt.Errorf("%w: %w", convo.ErrRefused, err)
	}
	a, known := t.agents.Lookup(target.Agent)
	if !known || !a.Headless() {
		return refuse(fmt.Errorf("no pane runs %s, and %s has no turns without one", keyOf(target), target.Agent))
	}
	if t.fleet == nil {
		return refuse(errors.New("cellmux is starting"))
	}
	ref := Ref{target.Cell, target.Slot}
	c, s, err := t.fleet.cellAndSlot(ctx, ref)
	if err != nil {
		return refuse(err)
	}
	if problem := t.fleet.lookAt(ctx, c).problem; problem != "" {
		return refuse(errors.New(problem))
	}
	program, err := t.fleet.findFor(ctx, c, s.Agent)
	if err != nil {
		return refuse(err)
	}
	// No pane opens in this conversation while the turn runs, and no turn begins
	// while one opens.
	held, err := lock.Try(t.fleet.slotLock(ref))
	if errors.Is(err, lock.ErrHeld) {
		return refuse(fmt.Errorf("%s is being started", ref))
	}
	if err != nil {
		return refuse(err)
	}
	defer held.Release()
	switch _, live, err := t.fleet.live(ctx, ref); {
	case err != nil:
		return refuse(err)
	case live:
		return refuse(fmt.Errorf("%s has a pane by now", ref))
	}
	if _, err := t.opener.EndLeftover(ctx, s.Cell, s.Number, nil); err != nil {
		return refuse(err)
	}
	if s, err = t.fleet.resumable(ctx, c, s); err != nil {
		return refuse(err)
	}
	carrier := t.fleet.engineCell(ctx, c)
	prepared, err := t.opener.Prepare(ctx, engine.OpenRequest{
		Cell: carrier, Slot: s.Number, Agent: s.Agent, BoundID: s.AgentSession, Program: program,
		Review: s.Review, Prompts: t.fleet.o.Prompts, Headless: true,
	})
	if err != nil {
		return refuse(err)
	}
	if err := prepared.Engine.Up(ctx, carrier, nil); err != nil {
		return refuse(err)
	}
	execution := uuid.NewString()
	launch, err := prepared.Engine.Launch(engine.Spec{
		Cell: carrier, Argv: prepared.Plan.Argv, Env: prepared.Env.Pairs(), Secrets: prepared.Env.Secrets(), Execution: execution,
	})
	if err != nil {
		return refuse(err)
	}
	reader, err := a.Turn(prepared.Plan.Session, emit)
	if err != nil {
		return refuse(err)
	}
	turning, end := context.WithCancelCause(ctx)
	defer end(nil)
	silence := alarm{time.AfterFunc(t.silence, func() { end(errSilent) }), t.silence}
	defer silence.timer.Stop()
	process, err := t.runner.Start(turning, proc.Cmd{
		Argv: launch.Argv, Dir: launch.Dir, Env: launch.Env, Grace: turnGrace, Marker: execution,
	})
	if err != nil {
		return refuse(err)
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		// An agent that ends early closes its end; its output says why.
		_, _ = io.WriteString(process.Stdin(), text)
		_ = process.Stdin().Close()
	})
	talk := &tail{limit: stderrKept}
	_, _ = io.Copy(io.MultiWriter(reader, talk, silence), process.Stdout()) // its end is the process's
	result, waitErr := process.Wait()
	writing.Wait()
	cancelled := turning.Err() != nil
	if cancelled {
		// What runs inside a guest does not end with the client outside.
		ending, done := context.WithTimeout(context.WithoutCancel(ctx), 2*turnGrace)
		defer done()
		_ = prepared.Engine.End(ending, carrier, execution) // nothing left is the common case
	}
	if waitErr != nil && !cancelled {
		return convo.Turn{}, fmt.Errorf("run a turn of %s: %w", keyOf(target), waitErr)
	}
	turn := reader.Result(result.ExitCode, talk.String(), cancelled)
	if ctx.Err() == nil && errors.Is(context.Cause(turning), errSilent) {
		turn.Error = fmt.Sprintf("it said nothing for %s and was ended", t.silence)
	}
	// What a guest's agent calls its conversation is believed in the right form.
	if prepared.Plan.Session == "" && turn.Error == "" && a.ValidSession(turn.Session) {
		if err := t.fleet.o.Store.SetAgentSession(ctx, s.Cell, s.Number, turn.Session); err != nil {
			return convo.Turn{}, err
		}
	}
	return convo.Turn{Text: turn.Text, Error: turn.Error, Usage: turn.Usage}, nil
}

// tail keeps the end of what an agent prints besides its events.
type tail struct {
	limit int
	kept  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - t.limit; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// String leaves events out: they are judged, not quoted.
func (t *tail) String() string {
	var lines []string
	for line := range strings.Lines(string(t.kept)) {
		if !strings.HasPrefix(strings.TrimSpace(line), "{") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}
