package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellmux/cell/state"
)

func TestADatabaseThatSomebodyHoldsForTenSecondsStopsNoKeyAndLosesNothing(t *testing.T) {
	env, dir := isolated(t)
	if err := openTerminal(t, env, dir, "new", ".").end(); err != nil {
		t.Fatal(err)
	}
	home, _ := strings.CutPrefix(env[0], "HOME=")
	db, _, err := state.Open(t.Context(), filepath.Join(home, ".local", "state", "cellmux", "cellmux.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.SQL().BeginTx(t.Context(), nil) // takes the write lock
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // an error once it has let go

	term := openTerminal(t, env, dir) // the screen comes up
	term.waitFor("▾ 1 project")
	press := func(keys string) {
		if _, err := term.master.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	press("R") // the new title is written when the database is free
	term.waitFor("Rename")
	press("X\r")
	held := time.NewTimer(10 * time.Second)
	defer held.Stop()
	term.waitFor("Still at it")
	press("?")
	term.waitFor("Keys in the list")
	press("\x1b")
	<-held.C
	if strings.Contains(term.text(), "▾ 1 projectX") { // the form shows the name alone
		t.Error("the title was changed under the lock")
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	term.waitFor("▾ 1 projectX")
	press("q")
	_ = term.end()
	term.givenBack()
}

func TestAttachingLeavesNothingOnTheUsersOwnScreen(t *testing.T) {
	env, dir := isolated(t)
	if err := openTerminal(t, env, dir, "open", ".", "--agent", "shell").end(); err != nil {
		t.Fatal(err)
	}
	term := openTerminal(t, env, dir)
	term.waitFor("○ shell")
	for i := range 3 {
		if _, err := term.master.WriteString("j\r"); err != nil {
			t.Fatal(err)
		}
		back := 2 * (i + 1) // the screen's own way out, and tmux's
		term.wait("attaching", func(text string) bool { return strings.Count(text, "\x1b[?1049h") == back })
		term.wait("tmux's status line", func(text string) bool {
			return strings.Contains(text[strings.LastIndex(text, "\x1b[?1049h"):], "ctrl-q")
		})
		if _, err := term.master.WriteString("\x11"); err != nil {
			t.Fatal(err)
		}
		term.wait("coming back", func(text string) bool { return strings.Count(text, "\x1b[?1049h") == back+1 })
	}
	if _, err := term.master.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if err := term.end(); err != nil {
		t.Fatal(err)
	}
	term.givenBack()
	if text := term.text(); strings.Contains(text, "[detached") || strings.Contains(text, "[exited") {
		t.Errorf("tmux wrote on the user's screen: %q", text)
	}
}
