package convo

import (
	"regexp"
	"strings"

	"cellmux/shellctx"
	"cellmux/shellctx/protocol"
)

// compose makes the text of a delivery, with the context in front.
func compose(context []Entry, m protocol.ChatMessage) string {
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
		return guard(body)
	}
	return strings.Join(append(blocks, body), "\n\n")
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
