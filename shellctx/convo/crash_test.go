package convo

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cellmux/cell/state"
	"cellmux/shellctx"
)

// The test binary is also the processes that are killed, and those that race:
// childVariable says what to do, directoryVariable where.
const (
	childVariable     = "CELLMUX_CONVO_TEST_CHILD"
	directoryVariable = "CELLMUX_CONVO_TEST_DIRECTORY"
	stepVariable      = "CELLMUX_CONVO_TEST_STEP"
)

func TestMain(m *testing.M) {
	role := os.Getenv(childVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := child(role, os.Getenv(directoryVariable)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// filePane is an agent's pane that outlives the processes which type into it:
// a file with a line for each paste, Enter and headless turn. It is on disk
// when a call returns.
type filePane struct {
	path string
	live bool
}

type paneEvent struct {
	Kind string `json:"kind"` // paste, enter, turn
	Text string `json:"text,omitempty"`
}

func (p filePane) write(e paneEvent) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(p.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	return file.Sync()
}

func (p filePane) events() ([]paneEvent, error) {
	content, err := os.ReadFile(p.path)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var events []paneEvent
	for line := range bytes.Lines(content) {
		var e paneEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	return events, nil
}

// taken returns what became a turn, in order, and what stands in the box.
func (p filePane) taken() (turns []string, box string, err error) {
	events, err := p.events()
	for _, e := range events {
		switch e.Kind {
		case "paste":
			box += e.Text
		case "enter":
			turns = append(turns, box)
			box = ""
		case "turn":
			turns = append(turns, e.Text)
		}
	}
	return turns, box, err
}

func (p filePane) State(context.Context, Target) (PaneState, error) {
	_, box, err := p.taken()
	return PaneState{Live: p.live, Ready: true, Draft: box != ""}, err
}

func (p filePane) Paste(_ context.Context, _ Target, text string) error {
	return p.write(paneEvent{Kind: "paste", Text: text})
}

func (p filePane) Enter(context.Context, Target) error { return p.write(paneEvent{Kind: "enter"}) }

func (p filePane) Submitted(_ context.Context, _ Target, text string, _ time.Time) (bool, error) {
	turns, _, err := p.taken()
	for _, turn := range turns {
		if turn == text {
			return true, nil
		}
	}
	return false, err
}

func (p filePane) SteersOnEnter(Target) bool { return false }

func (p filePane) Run(_ context.Context, _ Target, text string, emit func(string)) (Turn, error) {
	emit("half an ")
	if err := p.write(paneEvent{Kind: "turn", Text: text}); err != nil {
		return Turn{}, err
	}
	emit("answer")
	return Turn{}, nil
}

func openService(ctx context.Context, dir string, live bool, crash func(string)) (*Service, func() error, error) {
	db, _, err := state.Open(ctx, filepath.Join(dir, "cellmux.db"))
	if err != nil {
		return nil, nil, err
	}
	if err := db.Migrate(ctx, "convo", Migrations()); err != nil {
		return nil, nil, err
	}
	p := filePane{path: filepath.Join(dir, "pane"), live: live}
	options := Options{DB: db.SQL(), Path: db.Path(), LockDir: dir, Pane: p, crash: crash, RetryInterval: 50 * time.Millisecond}
	if !live {
		options.Headless = p
	}
	return New(options), db.Close, nil
}

func child(role, dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch role {
	case "pane", "headless":
		return conversation(ctx, dir, role == "pane")
	case "script":
		return script(ctx, dir)
	case "screen":
		return screen(ctx, dir)
	}
	return fmt.Errorf("unknown role %q", role)
}

// messages of the conversation that is killed at every step.
var killed = []struct{ id, text, command string }{
	{id: "r1", command: "first command"},
	{id: "m1", text: "first message"},
}

// conversation submits and delivers, and dies by SIGKILL at the given step. It
// notes each message that was accepted.
func conversation(ctx context.Context, dir string, live bool) error {
	die, err := strconv.Atoi(os.Getenv(stepVariable))
	if err != nil {
		return err
	}
	step := 0
	s, _, err := openService(ctx, dir, live, func(name string) {
		if step++; step == die {
			fmt.Println("died", name)
			killSelf()
		}
	})
	if err != nil {
		return err
	}
	for _, m := range killed {
		message := text(m.id, m.text)
		if m.command != "" {
			if message, err = shellctx.NewMessage(m.id, shellctx.Record{Command: m.command}, time.Unix(1_800_000_000, 0)); err != nil {
				return err
			}
		}
		if _, err := s.Submit(ctx, api, message); err != nil {
			return err
		}
		fmt.Println("accepted", m.id)
	}
	if err := s.Deliver(ctx, api); err != nil {
		return err
	}
	fmt.Println("ended", step)
	return nil
}

func run(ctx context.Context, role, dir string, step int) (string, error) {
	command := exec.CommandContext(ctx, os.Args[0])
	command.Env = []string{childVariable + "=" + role, directoryVariable + "=" + dir, fmt.Sprintf("%s=%d", stepVariable, step)}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return string(out), err
}

func TestKilledAtEveryStepOfADelivery(t *testing.T) {
	if !canKillSelf {
		t.Skip("needs SIGKILL")
	}
	for _, transport := range []string{"pane", "headless"} {
		t.Run(transport, func(t *testing.T) {
			// The steps are counted by a run that dies at none.
			const never = 1 << 30
			dir := t.TempDir()
			out, err := run(t.Context(), transport, dir, never)
			var count int
			if _, scanErr := fmt.Sscanf(lastLine(out), "ended %d", &count); err != nil || scanErr != nil || count < 12 {
				t.Fatalf("without a death: %v, %d steps\n%s", err, count, out)
			}
			verifyDeath(t, transport, dir, out)
			var wait sync.WaitGroup
			steps := make(chan int)
			for range 3 {
				wait.Go(func() {
					for step := range steps {
						dir := filepath.Join(t.TempDir(), strconv.Itoa(step))
						out, _ := run(t.Context(), transport, dir, step)
						name, died := strings.CutPrefix(lastLine(out), "died ")
						if !died {
							t.Errorf("%s, step %d did not die:\n%s", transport, step, out)
						}
						verifyDeath(t, fmt.Sprintf("%s, step %d, %s", transport, step, name), dir, out)
					}
				})
			}
			for step := 1; step <= count; step++ {
				steps <- step
			}
			close(steps)
			wait.Wait()
			t.Logf("died at each of %d steps", count)
		})
	}
}

func lastLine(out string) string {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[len(lines)-1]
}

// verifyDeath starts again after a death and checks what the issue promises: no
// accepted message lost, none typed twice, nothing called submitted that was
// not, and what is uncertain left to the user, who then repeats it.
func verifyDeath(t *testing.T, what, dir, out string) {
	live := strings.HasPrefix(what, "pane")
	s, closeDB, err := openService(t.Context(), dir, live, nil)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	defer closeDB()
	for range 2 {
		if err := s.Deliver(t.Context(), api); err != nil {
			t.Errorf("%s: deliver again: %v", what, err)
		}
	}
	p := filePane{path: filepath.Join(dir, "pane"), live: live}
	turns, box, err := p.taken()
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	entries, err := s.Page(t.Context(), api.Session, 0, 100)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	stored := map[string]Entry{}
	for _, e := range entries {
		stored[e.Message.ID] = e
	}
	for _, m := range killed {
		e, present := stored[m.id]
		if !present {
			if strings.Contains(out, "accepted "+m.id+"\n") {
				t.Errorf("%s: %s was accepted and is lost", what, m.id)
			}
			continue
		}
		took, typed := strings.Count(strings.Join(turns, "\n"), m.text+m.command), strings.Count(strings.Join(turns, "\n")+box, m.text+m.command)
		if typed > 1 {
			t.Errorf("%s: %s was typed %d times", what, m.id, typed)
		}
		switch e.Delivery {
		case Submitted, Answered:
			if took != 1 {
				t.Errorf("%s: %s is called %s, the agent took it %d times", what, m.id, e.Delivery, took)
			}
		case Queued:
			if typed != 0 || box == "" {
				t.Errorf("%s: %s is still queued, typed %d times, box %q", what, m.id, typed, box)
			}
		case Saved:
			if typed != 0 {
				t.Errorf("%s: %s is called saved, but was typed", what, m.id)
			}
		case Unconfirmed:
			if m.text != "" && e.Reason == "" {
				t.Errorf("%s: %s is unconfirmed without a reason", what, m.id)
			}
		default:
			t.Errorf("%s: %s is %q", what, m.id, e.Delivery)
		}
	}
	if t.Failed() {
		t.Logf("%s:\n%s", what, out)
	}
	userRepeats(t, what, s, p, entries)
}

// userRepeats clears the box as a user would, and says "again" to what is
// unconfirmed: everything that was accepted reaches the agent.
func userRepeats(t *testing.T, what string, s *Service, p filePane, entries []Entry) {
	if _, box, err := p.taken(); err == nil && box != "" {
		if err := os.WriteFile(p.path, nil, 0o600); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, e := range entries {
		if e.Delivery == Unconfirmed && !shellctx.IsContextOnly(e.Message) {
			if err := s.Retry(t.Context(), e.Seq); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if err := s.Deliver(t.Context(), api); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	// What is said afterwards arrives too, once.
	if _, err := s.Submit(t.Context(), api, text("m2", "second message")); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if err := s.Deliver(t.Context(), api); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	if turns, _, err := p.taken(); err != nil || strings.Count(strings.Join(turns, "\n"), "second message") != 1 {
		t.Errorf("%s: the next message: %q, %v", what, turns, err)
	}
	after, err := s.Page(t.Context(), api.Session, 0, 100)
	if err != nil {
		t.Errorf("%s: %v", what, err)
	}
	for _, e := range after {
		if e.Message.Role == "user" && !shellctx.IsContextOnly(e.Message) && e.Delivery != Submitted && e.Delivery != Answered {
			t.Errorf("%s: after the user's word %s is %s: %s", what, e.Message.ID, e.Delivery, e.Reason)
		}
	}
}

const (
	racers        = 3
	racerMessages = 8
)

// script submits messages as `cellmux send` does: store, deliver, leave.
func script(ctx context.Context, dir string) error {
	s, closeDB, err := openService(ctx, dir, true, nil)
	if err != nil {
		return err
	}
	defer closeDB()
	for i := range racerMessages {
		if _, err := s.Submit(ctx, api, text("", fmt.Sprintf("<%s-%d>", os.Getenv(stepVariable), i))); err != nil {
			return err
		}
		if err := s.Deliver(ctx, api); err != nil {
			return err
		}
	}
	return nil
}

// screen submits as a screen does, and delivers what anybody queues, until its
// standard input ends.
func screen(ctx context.Context, dir string) error {
	s, closeDB, err := openService(ctx, dir, true, nil)
	if err != nil {
		return err
	}
	defer closeDB()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	for i := range racerMessages {
		if _, err := s.Submit(ctx, api, text("", fmt.Sprintf("<%s-%d>", os.Getenv(stepVariable), i))); err != nil {
			return err
		}
	}
	fmt.Println("submitted")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	cancel()
	return <-ended
}

func TestTwoScreensAndAScriptTypeEachMessageOnce(t *testing.T) {
	dir := t.TempDir()
	var wait sync.WaitGroup
	var stops []func() error
	for i, role := range []string{"screen", "screen", "script"} {
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = []string{childVariable + "=" + role, directoryVariable + "=" + dir, fmt.Sprintf("%s=%d", stepVariable, i)}
		// A screen ends when it is told to, the script by itself.
		if role == "screen" {
			stdin, err := command.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stops = append(stops, stdin.Close)
		}
		var out bytes.Buffer
		command.Stdout, command.Stderr = &out, &out
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		wait.Go(func() {
			if err := command.Wait(); err != nil {
				t.Errorf("%s: %v: %s", role, err, out.String())
			}
		})
	}
	p := filePane{path: filepath.Join(dir, "pane"), live: true}
	eventually(t, "all messages became turns", func() bool {
		turns, _, err := p.taken()
		return err == nil && len(turns) >= racers*racerMessages
	})
	for _, stop := range stops {
		if err := stop(); err != nil {
			t.Error(err)
		}
	}
	wait.Wait()
	events, err := p.events()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for i, e := range events {
		if want := []string{"paste", "enter"}[i%2]; e.Kind != want {
			t.Fatalf("event %d is %q, want %q: two deliverers mixed", i, e.Kind, want)
		}
		if e.Kind == "paste" {
			seen[e.Text]++
		}
	}
	for racer := range racers {
		for i := range racerMessages {
			if m := fmt.Sprintf("<%d-%d>", racer, i); seen[m] != 1 {
				t.Errorf("%s was typed %d times", m, seen[m])
			}
		}
	}
}
