package cell

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"cellmux/cell/cfg"
)

// ContainerContext describes to an agent the cell that it runs in: its paths and
// their host counterparts, what is mounted and how, where work must be kept, what
// git can do, the limits. It holds facts that the engine vouches for (cfg.Guest)
// and nothing of the user's prompt text; it is never empty and ends in one
// newline. A host cell is told that it is not isolated.
func ContainerContext(c cfg.Config, cellCfg cfg.CellConfig) string {
	var b contextBuilder
	if c.Guest.Isolated {
		b.isolated(c)
	} else {
		b.host(c)
	}
	b.git(c.Guest)
	b.limits(c.Guest, cellCfg)
	return b.text.String()
}

type contextBuilder struct{ text strings.Builder }

func (b *contextBuilder) heading(title string) {
	if b.text.Len() > 0 {
		b.text.WriteByte('\n')
	}
	b.text.WriteString("## " + title + "\n\n")
}

func (b *contextBuilder) line(format string, args ...any) {
	for i, arg := range args {
		if s, ok := arg.(string); ok {
			args[i] = oneLine(s)
		}
	}
	fmt.Fprintf(&b.text, format+"\n", args...)
}

// oneLine keeps a path or a name from adding lines of its own to the prompt: a
// directory may be called anything.
func oneLine(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }) {
		return strconv.Quote(s)
	}
	return s
}

func (b *contextBuilder) host(c cfg.Config) {
	b.heading("Environment")
	b.line("You run directly on the user's machine, in the cell %s. It is NOT isolated: every command acts on the user's real files, processes and network, with the user's rights.", c.AppName())
	b.line("- The project is %s; it is the working directory.", c.ProjectDir)
	b.line("- Paths that the user names are real paths: no translation is needed.")
	b.line("- Ask before you change anything outside the project directory.")
}

func (b *contextBuilder) isolated(c cfg.Config) {
	g := c.Guest
	b.heading("Environment")
	kind := firstSet(g.Kind, "isolated guest")
	b.line("You run inside a %s, in the cell %s.", kind, c.AppName())
	if g.Hostname != "" {
		b.line("- Hostname: %s", g.Hostname)
	}
	if g.ProjectDir != "" {
		b.line("- Working directory: %s. It is the directory %s of the host, the same files.", g.ProjectDir, c.ProjectDir)
	}
	if g.Home != "" {
		b.line("- Home: %s. It is the workspace %s, %s on the host, and it is shared with the other cells of that workspace.", g.Home, c.Workspace, c.WorkspaceHome)
	}
	b.mounts(g)
	b.heading("Where work is kept")
	b.line("Only what lies in the directories above outlives this guest. Anything written elsewhere, and every package installed into the system, is lost when the guest is made again.")
	b.line("When the user names a path of the host, use its counterpart inside; what has none cannot be reached from here. The host's own files, credentials and SSH keys are not here.")
}

func (b *contextBuilder) mounts(g cfg.Guest) {
	if len(g.Mounts) == 0 {
		return
	}
	b.heading("Directories shared with the host")
	b.line("| host | here | access | |")
	b.line("| --- | --- | --- | --- |")
	for _, m := range g.Mounts {
		access := "read-write"
		if m.ReadOnly {
			access = "read-only"
		}
		b.line("| %s | %s | %s | %s |", tableText(m.Host), tableText(m.Guest), access, tableText(m.Note))
	}
}

// tableText escapes what would end a table cell.
func tableText(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

func (b *contextBuilder) git(g cfg.Guest) {
	var sentence string
	switch g.Git {
	case cfg.GitReadWrite:
		sentence = "git works here in full, commits included."
	case cfg.GitReadOnly:
		sentence = "git can read here (status, diff, log) and cannot write: the repository's own files are read-only. Do not try to commit; leave the changes in the working tree, the user looks at them and commits them on the host with cellmux (:commit)."
	case cfg.GitNone:
		sentence = "git cannot reach the repository from here. Leave the changes in the working tree, the user commits on the host."
	default:
		return
	}
	b.heading("Git")
	b.line("%s", sentence)
}

func (b *contextBuilder) limits(g cfg.Guest, cellCfg cfg.CellConfig) {
	var ports []string
	if g.Isolated {
		ports = cellCfg.Cell.Ports
	}
	if len(g.Limits) == 0 && len(ports) == 0 {
		return
	}
	b.heading("Limits")
	for _, limit := range g.Limits {
		b.line("- %s", limit)
	}
	if len(ports) > 0 {
		b.line("- Ports published to the host (host:here): %s. Others cannot be reached from outside.", strings.Join(ports, ", "))
	}
}
