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
	begun := time.Now()
	release := time.AfterFunc(11*time.Second, func() { _ = tx.Rollback() })
	defer release.Stop()

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
	term.waitFor("Still at it")
	press("?")
	term.waitFor("Keys in the list")
	press("\x1b")
	if waited := time.Since(begun); waited > 10*time.Second {
		t.Errorf("the keys were answered after %v, when nobody held the database any more", waited)
	}
	term.waitFor("projectX")
	press("q")
	_ = term.end()
	term.givenBack()
}
