package convo

import (
	"regexp"
	"strings"

	"cellmux/shellctx"
	"cellmux/shellctx/protocol"
)

// CommandKey is the metadata of a message that is a command of the agent's own,
// such as /compact: it goes out alone and unchanged, since in front of it or
// within other text it would not be one.
const CommandKey = "cellmux.agent_command"

// MarkCommand makes a message a command of the agent's own.
func MarkCommand(m *protocol.ChatMessage) { _ = m.SetMeta(CommandKey, true) }

// compose makes the text of a delivery and says whether the context is in it.
func compose(context []Entry, m protocol.ChatMessage) (text string, withContext bool) {
	if m.Flag(CommandKey) {
		return m.Text(), false
	}
	var blocks []string
	for _, c := range context {
		if record, ok := shellctx.FromMessage(c.Message); ok {
			blocks = append(blocks, shellctx.ContextText(record))
		}
	}
	body := m.Text()
	if record, ok := shellctx.FromMessage(m); ok {
		body = shellctx.ContextText(record)
	}
	// One trailing newline would be an empty line in the agent's box.
	body = strings.TrimRight(body, "\r\n")
	if len(blocks) == 0 {
		return guard(body), true
	}
	return strings.Join(append(blocks, body), "\n\n"), true
}

// active is what agents act upon at the beginning of a box instead of reading
// it: ! runs a shell, / is a command, # a memory.
var active = regexp.MustCompile(`^\s*[!/#]`)

// guard keeps prose from being taken for a command.
func guard(body string) string {
	if active.MatchString(body) {
		return "Message:\n" + body
	}
	return body
}
