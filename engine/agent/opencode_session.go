package agent

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf16"
)

// opencodeSessionInfo is a session in opencode's list.
type opencodeSessionInfo struct {
	ID        string
	Title     string
	Directory string
	ParentID  string `json:"parentID"`
}

// opencodeSessions is how many of the newest sessions are looked through.
const opencodeSessions = "50"

// shown is the session that opencode's screen shows, by the title that it gives
// its terminal; believed where that tells nothing. The HTTP interface names no
// session that is idle, and its list holds those of every opencode of the user,
// so a title that several sessions have says nothing either.
func (o opencodeAPI) shown(ctx context.Context, s sight, believed string) string {
	title, ok := strings.CutPrefix(s.slot.Pane.Title, "OC | ")
	if title = line(title); !ok || title == "" {
		return believed
	}
	var current opencodeSessionInfo
	if o.call(ctx, http.MethodGet, "/session/"+url.PathEscape(believed), nil, &current) != nil || terminalTitle(current.Title) == title {
		return believed
	}
	var list []opencodeSessionInfo
	if o.call(ctx, http.MethodGet, "/session?roots=true&limit="+opencodeSessions, nil, &list) != nil {
		return believed
	}
	found := ""
	for _, candidate := range list {
		if candidate.ParentID != "" || candidate.Directory != s.rooms.projectInside() || terminalTitle(candidate.Title) != title {
			continue
		}
		if found != "" {
			return believed
		}
		found = candidate.ID
	}
	if found == "" {
		return believed
	}
	return found
}

// terminalTitle cuts a session's title as opencode does for the terminal: at 40
// units of UTF-16.
func terminalTitle(title string) string {
	units := utf16.Encode([]rune(title))
	if len(units) <= 40 {
		return line(title)
	}
	return line(string(utf16.Decode(units[:37])) + "…")
}
