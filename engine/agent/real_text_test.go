package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellmux/engine/agent/agenttest"
)

func TestRealAgentTakesTextAsText(t *testing.T) {
	// What a path after an @ that the user wrote does: these two attach the file.
	attaches := map[string]bool{"claude": true, "gemini": true}
	for _, name := range agenttest.Names {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, name)
			if err := os.WriteFile(filepath.Join(u.project, "README.md"), []byte("README-CONTENT\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			u.must("new", "--name", "demo")
			u.must("open", "demo", "--agent", name)

			// A shell escape runs nothing, a command is none.
			for word, text := range map[string]string{"ALPHA": "!touch ran-by-a-bang ALPHA", "BETA": "/clear is what BETA says", "GAMMA": "#remember GAMMA"} {
				u.send(0, text)
				if r := u.asked(word); !strings.Contains(r.LastUser(), text) {
					t.Errorf("%q arrived as %q", text, r.LastUser())
				}
			}
			if _, err := os.Stat(filepath.Join(u.project, "ran-by-a-bang")); !errors.Is(err, os.ErrNotExist) {
				t.Error("the message ran in a shell")
			}

			// A path that a program printed attaches nothing; nothing of the file is
			// on the wire so far.
			u.must("run", "demo:0", "echo see @README.md")
			u.send(0, "what was printed DELTA")
			if r := u.asked("DELTA"); strings.Contains(r.UserText(), "README-CONTENT") {
				t.Errorf("a printed path attached its file: %q", r.LastUser())
			}

			// One that the user wrote does what the agent makes of it, also at the
			// end, where a list of files would take the Enter.
			u.send(0, "EPSILON is in @README.md")
			r := u.mock.Wait(t, time.Minute, "EPSILON", func(r agenttest.Request) bool { return strings.Contains(r.UserText(), "EPSILON") })
			if !strings.Contains(r.UserText(), "EPSILON is in @README.md") {
				t.Errorf("the path did not arrive: %q", r.LastUser())
			}
			if attached := strings.Contains(string(r.Body), "README-CONTENT"); attached != attaches[name] {
				t.Errorf("the file is attached: %v, want %v", attached, attaches[name])
			}
		})
	}
}
