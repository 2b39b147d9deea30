package cli

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"cellmux/cell/proc"
	"cellmux/cell/state"
	"cellmux/engine"
	"cellmux/engine/agent"
	"cellmux/engine/tmux"
)

// The checks of doctor. Each opens itself what it looks at, changes nothing, and
// gives every finding that is not good a next step.

// CheckTerminal looks at what the environment tells about the terminal; asking
// the terminal itself would wait for an answer that may not come.
func CheckTerminal(getenv func(string) string, home string) Check {
	return func(context.Context) []Finding {
		var out []Finding
		name := getenv("TERM")
		switch {
		case name == "":
			out = append(out, Finding{"terminal", Problem, "TERM is not set", "set TERM to what your terminal is, such as xterm-256color"})
		case name == "dumb":
			out = append(out, Finding{"terminal", Problem, "TERM is dumb: no screen can be shown", "set TERM to what your terminal is; cellmux ls and the other commands work without"})
		case !knownTerminal(name, getenv, home):
			out = append(out, Finding{"terminal", Problem, fmt.Sprintf("this system does not know the terminal %q, and tmux cannot attach there", name),
				"install the package ncurses-term, or set TERM=xterm-256color"})
		default:
			out = append(out, Finding{"terminal", Good, name, ""})
		}
		switch colour := getenv("COLORTERM"); {
		case getenv("NO_COLOR") != "":
			out = append(out, Finding{"colours", Good, "off (NO_COLOR)", ""})
		case colour == "truecolor" || colour == "24bit":
			out = append(out, Finding{"colours", Good, "24 bit (COLORTERM)", ""})
		case strings.Contains(name, "256color") || strings.Contains(name, "direct"):
			out = append(out, Finding{"colours", Good, "256", ""})
		default:
			out = append(out, Finding{"colours", Notice, "16", "if your terminal has more, set TERM=xterm-256color or COLORTERM=truecolor"})
		}
		locale := getenv("LC_ALL")
		for _, variable := range []string{"LC_CTYPE", "LANG"} {
			if locale == "" {
				locale = getenv(variable)
			}
		}
		if lower := strings.ToLower(locale); strings.Contains(lower, "utf-8") || strings.Contains(lower, "utf8") {
			out = append(out, Finding{"locale", Good, locale, ""})
		} else {
			out = append(out, Finding{"locale", Notice, fmt.Sprintf("%q has no UTF-8: the screen is drawn in ASCII", locale), "set LANG=C.UTF-8, or your language's UTF-8 locale"})
		}
		if getenv("TERM_PROGRAM") == "vscode" {
			out = append(out, Finding{"keyboard", Notice, "the terminal of VS Code takes ctrl-q for itself", "come back from a pane with F12, or set [tmux] detach in config.toml"})
		}
		return out
	}
}

// knownTerminal looks for the terminfo entry of a terminal as terminfo(5) says
// where they lie.
func knownTerminal(name string, getenv func(string) string, home string) bool {
	if strings.ContainsRune(name, '/') {
		return false
	}
	dirs := []string{getenv("TERMINFO"), filepath.Join(home, ".terminfo")}
	dirs = append(dirs, filepath.SplitList(getenv("TERMINFO_DIRS"))...)
	dirs = append(dirs, "/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/lib/terminfo", "/usr/local/share/terminfo", "/opt/homebrew/share/terminfo")
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		for _, letter := range []string{name[:1], hex.EncodeToString([]byte(name[:1]))} { // macOS writes the letter in hexadecimal
			if _, err := os.Stat(filepath.Join(dir, letter, name)); err == nil {
				return true
			}
		}
	}
	return false
}

// CheckTmux looks at the tmux program and at the server that runs.
func CheckTmux(server *tmux.Server) Check {
	return func(ctx context.Context) []Finding {
		version, err := server.Probe(ctx)
		switch {
		case errors.Is(err, proc.ErrNotFound):
			return []Finding{{"tmux", Problem, "tmux is not installed", "install the package tmux, 3.2 or later"}}
		case errors.Is(err, tmux.ErrOld):
			return []Finding{{"tmux", Problem, err.Error(), "upgrade the package tmux"}}
		case err != nil:
			return []Finding{{"tmux", Problem, err.Error(), "run tmux -V to see what it says"}}
		}
		out := []Finding{{"tmux", Good, version, ""}}
		list := server.Refresh(ctx)
		switch {
		case !list.Known:
			out = append(out, Finding{"tmux server", Problem, list.Err, "look for a stopped tmux process (ps -C tmux -o pid,stat,args); kill -CONT continues it"})
		case list.ServerPID == 0:
			out = append(out, Finding{"tmux server", Good, "none runs; the first pane starts it", ""})
		case list.Version != version:
			out = append(out, Finding{"tmux server", Notice, fmt.Sprintf("the server that runs is %s, the program is %s", list.Version, version),
				"stop the panes when they are done; the next one starts a new server"})
		default:
			out = append(out, Finding{"tmux server", Good, fmt.Sprintf("process %d, %d panes", list.ServerPID, len(list.Panes)), ""})
		}
		return out
	}
}

// CheckEngines probes every engine.
func CheckEngines(engines []engine.Engine) Check {
	return func(ctx context.Context) []Finding {
		var out []Finding
		for _, e := range engines {
			subject := "engine " + string(e.Kind())
			if a := e.Probe(ctx); a.Usable {
				out = append(out, Finding{subject, Good, strings.TrimSpace("usable " + a.Version), ""})
			} else {
				out = append(out, Finding{subject, Notice, "not usable", a.Reason})
			}
		}
		return out
	}
}

// CheckAgents looks for every agent and asks those that are there for their
// version and flags, all at once.
func CheckAgents(agents *agent.Set, lookPath func(string) (string, error)) Check {
	return func(ctx context.Context) []Finding {
		names := agents.Names()
		out := make([]Finding, len(names))
		var asking sync.WaitGroup
		for i, name := range names {
			a, _ := agents.Lookup(name)
			path, found := a.Find(lookPath)
			switch {
			case found:
				asking.Go(func() { out[i] = judgeAgent(a, path, a.Probe(ctx, path)) })
			case a.Install() != "":
				out[i] = Finding{"agent " + name, Notice, "not found on PATH", a.Install()}
			default:
				out[i] = Finding{"agent " + name, Notice, "not found on PATH", "put its program on PATH"}
			}
		}
		asking.Wait()
		return out
	}
}

// judgeAgent says on one line what an agent's binary is and what does not work
// with it.
func judgeAgent(a *agent.Agent, path string, p agent.Probed) Finding {
	f := Finding{Subject: "agent " + a.Name(), Level: Good, Detail: path}
	update := cmp.Or(a.Install(), "install version "+a.Verified())
	if p.Fault != "" {
		return Finding{f.Subject, Notice, fmt.Sprintf("%s does not answer (%s)", path, p.Fault), "run " + path + " --help to see what it says; " + update}
	}
	switch p.Standing {
	case agent.Checked:
		f.Detail += fmt.Sprintf(", version %s, verified", p.Version)
	case agent.Newer:
		f.Detail += fmt.Sprintf(", version %s, newer than the verified %s", p.Version, a.Verified())
	case agent.Older:
		f.Detail += fmt.Sprintf(", version %s, older than the verified %s", p.Version, a.Verified())
	case agent.Unchecked:
		f.Detail += ", version " + p.Version
	}
	if len(p.Missing) > 0 {
		f.Detail += "; it does not know " + strings.Join(p.Missing, ", ")
	}
	for _, cost := range p.Costs {
		f.Detail += "; " + cost
	}
	if len(p.Missing) > 0 || len(p.Costs) > 0 {
		f.Level = Notice
		f.Next = fmt.Sprintf("for all of it use version %s: %s", a.Verified(), update)
	}
	return f
}

// CheckDatabase opens the database if there is one, and has SQLite check it.
func CheckDatabase(path string) Check {
	return func(ctx context.Context) []Finding {
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			return []Finding{{"database", Good, "none yet; the first cell makes it", ""}}
		}
		if err != nil {
			return []Finding{{"database", Problem, err.Error(), "check the permissions of " + filepath.Dir(path)}}
		}
		db, report, err := state.Open(ctx, path)
		switch {
		case errors.Is(err, state.ErrReadOnly):
			return []Finding{{"database", Problem, err.Error(), "make " + path + " and its directory writable for you"}}
		case errors.Is(err, state.ErrFull):
			return []Finding{{"database", Problem, err.Error(), "make room on the disk of " + filepath.Dir(path)}}
		case errors.Is(err, state.ErrLocked):
			return []Finding{{"database", Problem, err.Error(), "end the process that holds it: fuser " + path}}
		case errors.Is(err, state.ErrNewer):
			return []Finding{{"database", Problem, err.Error(), "use that cellmux, or set another XDG_STATE_HOME"}}
		case err != nil:
			return []Finding{{"database", Problem, err.Error(), "move " + path + " aside and start again; nothing else is lost"}}
		}
		defer db.Close()
		if report.SetAside != "" {
			return []Finding{{"database", Problem, fmt.Sprintf("it was damaged (%s) and lies in %s; a new one was begun", report.Reason, report.SetAside),
				"keep that file if you miss something from it: sqlite3 FILE .recover"}}
		}
		var verdict string
		if err := db.SQL().QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict); err != nil {
			return []Finding{{"database", Problem, err.Error(), "run cellmux doctor again; if it stays, move " + path + " aside"}}
		}
		if verdict != "ok" {
			return []Finding{{"database", Problem, verdict, "move " + path + " aside; sqlite3 FILE .recover saves what can be read"}}
		}
		return []Finding{{"database", Good, fmt.Sprintf("%s, %d KiB", path, info.Size()>>10), ""}}
	}
}

// leastFree is the free space below which doctor warns, in bytes.
const leastFree = 256 << 20

// CheckDisk looks at the free space where cellmux keeps its state.
func CheckDisk(dir string) Check {
	return func(context.Context) []Finding {
		for _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) && dir != filepath.Dir(dir); _, err = os.Stat(dir) {
			dir = filepath.Dir(dir) // it is made below the first one that exists
		}
		free, err := freeSpace(dir)
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			return nil
		case err != nil:
			return []Finding{{"disk", Notice, err.Error(), "look at it with df " + dir}}
		case free < leastFree:
			return []Finding{{"disk", Problem, fmt.Sprintf("%d MiB are free in %s", free>>20, dir), "make room: the database is refused its next write when the disk is full"}}
		}
		return []Finding{{"disk", Good, fmt.Sprintf("%d MiB are free in %s", free>>20, dir), ""}}
	}
}

// CheckFiles checks the settings and the devcell.toml files.
func CheckFiles(subject string, check func() error) Check {
	return func(context.Context) []Finding {
		err := check()
		if err == nil {
			return []Finding{{subject, Good, "no fault", ""}}
		}
		var out []Finding
		for _, line := range strings.Split(err.Error(), "\n") {
			out = append(out, Finding{subject, Problem, line, "edit that line; cellmux config check looks again"})
		}
		return out
	}
}

// CheckClock looks for a clock that stands before this program was written:
// ages and the order of messages would be wrong.
func CheckClock(now func() time.Time) Check {
	return func(context.Context) []Finding {
		if t := now(); t.Year() < 2026 {
			return []Finding{{"clock", Problem, "it says " + t.Format(time.RFC3339), "set the clock: messages are ordered by it"}}
		}
		return nil
	}
}
