package agent

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"cellmux/cell/proc"
)

// sessionUUID is the form of the IDs that claude, codex and gemini give their
// conversations. Letters of either case pass: claude keeps them as they are.
var sessionUUID = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// sessionSes is that of opencode's.
var sessionSes = regexp.MustCompile(`^ses_[0-9A-Za-z]{8,64}$`)

// ValidSession says whether a text has the form of this agent's session IDs. An
// ID that was read from a guest, from a file or from an agent's output goes into
// an argv and into file names, so one that has not is as good as none.
func (a *Agent) ValidSession(id string) bool {
	return a.session != nil && a.session.MatchString(id)
}

// OwnSession is the ID that the agent gives a slot's first conversation, derived
// from the slot's session ID.
func (a *Agent) OwnSession(sessionID string) string {
	if a.derive == nil {
		return sessionID
	}
	return a.derive(sessionID)
}

// LastSession is the conversation in which a slot's agent was last seen since it
// was started, by what it left in the files of the slot; "" where they tell
// none. It serves a start after which nobody has watched: /clear inside the
// agent is then known from nowhere else. adopted says that it is the agent's own
// choice because it did not take ours.
func (s *Set) LastSession(slot Slot) (id string, adopted bool) {
	a, ok := s.Lookup(slot.Agent)
	if !ok || a.session == nil {
		return "", false
	}
	seen := s.sightOf(slot)
	if seen.launch.Agent == "" {
		return "", false
	}
	seen.events = readSpool(slot.Config.WorkspaceHome, seen.rooms.spool, seen.launch.Started)
	id = lastSession(seen)
	if a.last != nil {
		id = a.last(seen)
	}
	if !a.ValidSession(id) {
		return "", false
	}
	return id, seen.launch.Session == ""
}

// lastSession takes the ID from the newest hook that belongs to a conversation
// of this program's own. The start of another one that ran inside it, such as a
// headless turn as a tool, is no word of it: the turn's end follows.
func lastSession(s sight) string {
	turn, _ := s.events.newest("UserPromptSubmit", "BeforeAgent", "Stop", "StopFailure", "AfterAgent")
	start := s.events["SessionStart"]
	if s.nested(turn.body.SessionID) {
		turn = event{}
	}
	if start.at.After(turn.at) && slices.Contains([]string{"clear", "resume"}, start.body.Source) {
		return start.body.SessionID
	}
	return turn.body.SessionID
}

// nested says whether an ID is that of a conversation that another program began
// with the slot's hooks: gemini hands its home, and with it the hooks, on to a
// gemini that it runs as a tool.
func (s sight) nested(id string) bool {
	start, ok := s.events["SessionStart"]
	return ok && s.slot.Agent == "gemini" && start.body.SessionID == id && start.body.Source == "startup" && !s.planned(id)
}

// Elsewhere looks for a living program of this host that has a slot's
// conversation open besides the slot's own pane: somebody resumed it by hand in
// another terminal. A program without a terminal, such as one that a killed pane
// left behind, is no pane. One with another home keeps another conversation: the
// ID comes from the slot's name, which other users and homes may have too. Inside
// guests nobody can look.
func (s *Set) Elsewhere(slot Slot) (pid int, found bool) {
	a, ok := s.Lookup(slot.Agent)
	if !ok || a.session == nil || slot.Config.Guest.Isolated {
		return 0, false
	}
	id := slot.BoundID
	if id == "" {
		id = a.OwnSession(slot.SessionID)
	}
	ours := func(pid int) bool { return slot.Pane.PID > 0 && below(pid, slot.Pane.PID) }
	if a.holders != nil {
		for _, pid := range a.holders(s.sightOf(slot), id) {
			if !ours(pid) && hasTerminal(pid) {
				return pid, true
			}
		}
	}
	for _, pid := range running(a.programs, id) {
		if !ours(pid) && hasTerminal(pid) && livesIn(pid, slot.Home) {
			return pid, true
		}
	}
	return 0, false
}

// claudeHolders are the living processes that claude's registry names for a
// conversation: an argv need not name it.
func claudeHolders(s sight, id string) []int {
	var pids []int
	for _, e := range claudeEntries(s) {
		if e.SessionID == id && e.alive() {
			pids = append(pids, e.PID)
		}
	}
	return pids
}

// alive says whether the process of an entry lives: the one that wrote it, and
// not another that has its number now.
func (e claudeEntry) alive() bool {
	if e.PID <= 0 {
		return false
	}
	start, err := proc.StartTime(e.PID)
	return err == nil && (e.ProcStart == "" || e.ProcStart == strconv.FormatUint(start, 10))
}

// claudeEntries reads the registry. What is torn is left out: the next write
// brings it whole.
func claudeEntries(s sight) []claudeEntry {
	dir := filepath.Join(claudeDir(s), "sessions")
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var entries []claudeEntry
	for _, file := range files {
		number, isJSON := strings.CutSuffix(file.Name(), ".json")
		if _, err := strconv.Atoi(number); err != nil || !isJSON {
			continue
		}
		var e claudeEntry
		if _, err := readJSON(dir, filepath.Join(dir, file.Name()), &e); err != nil {
			continue
		}
		if e.Kind == "" || e.Kind == "interactive" {
			entries = append(entries, e)
		}
	}
	return entries
}

// Follow says whether a status tells that the agent is in a conversation of its
// own choice, other than the one that it was bound to. While a turn runs nothing
// is followed: a tool may have begun another conversation within it.
func (st Status) Follow(bound string) bool {
	return st.Session != "" && st.Session != bound && st.State != Working && st.State != Unknown
}
