package agent_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellmux/engine/agent/agenttest"
)

// repository makes the user's project a repository with one uncommitted change.
func (u *user) repository() {
	u.t.Helper()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(u.project, name), []byte(text), 0o600); err != nil {
			u.t.Fatal(err)
		}
	}
	write("README.md", "before\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=dev", "-c", "user.email=dev@example.org", "commit", "-q", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir, cmd.Env = u.project, u.environ
		if out, err := cmd.CombinedOutput(); err != nil {
			u.t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	write("README.md", "after, see @README.md\n")
}

func (u *user) toolRan() bool {
	_, err := os.Stat(filepath.Join(u.project, agenttest.ToolFile))
	return !errors.Is(err, os.ErrNotExist)
}

// answeredTool waits for the request that brings the result of the tool call
// which text asked for.
func (u *user) answeredTool(text string) {
	u.t.Helper()
	u.mock.Wait(u.t, 2*time.Minute, "the result of the tool after "+text, func(r agenttest.Request) bool {
		last := len(r.Messages) - 1
		return last >= 0 && r.Messages[last].Result && strings.Contains(r.UserText(), text)
	})
}

func TestRealAgentsReviewChangesNothing(t *testing.T) {
	for _, name := range agenttest.Names {
		t.Run(name, func(t *testing.T) {
			u := newUser(t, name)
			u.repository()
			u.must("new", "--name", "demo")
			u.must("open", "demo", "--agent", name)
			u.must("stop", "--force", "demo:0")

			if ref := u.must("review", "demo:0", "--wait", "4m"); ref != "demo:1" {
				t.Fatalf("the review is in %q", ref)
			}
			asked := u.asked("Review the uncommitted changes").LastUser()
			if !strings.Contains(asked, `+after, see \u0040README.md`) {
				t.Errorf("the diff is not in the request as what a program printed: %q", asked)
			}

			// The model calls a tool that writes, offered or not.
			u.send(1, "pane: "+agenttest.WordForce)
			u.answeredTool("pane: " + agenttest.WordForce)
			if u.toolRan() {
				t.Fatal("the reviewer wrote in the project")
			}
			if r := u.row(1); r.Status == "waiting" {
				t.Errorf("the reviewer asks for leave to write: %q", r.Question)
			}

			// It stays read-only without a pane.
			u.must("stop", "--force", "demo:1")
			out, _ := u.run("send", "demo:1", "--wait", "3m", "turn: "+agenttest.WordForce) // some agents call a refused tool a failed turn
			t.Logf("the turn is %s", out)
			u.answeredTool("turn: " + agenttest.WordForce)
			if u.toolRan() {
				t.Error("the reviewer wrote in the project, without a pane")
			}
		})
	}
}
