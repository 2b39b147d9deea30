package convo

import (
	"encoding/json"
	"fmt"
	"strconv"

	"cellmux/shellctx/protocol"
)

// usageKey is the metadata of an answer: what its turn used, as its agent counts
// it, a flat object.
const usageKey = "cellmux.usage"

// UsageText says in few words what the turn of an answer used, as far as its
// agent told: "1234 in, 56 out, $0.0123". "" is nothing known.
func UsageText(m protocol.ChatMessage) string {
	var usage map[string]any
	if json.Unmarshal(m.Meta[usageKey], &usage) != nil {
		return ""
	}
	number := func(names ...string) (float64, bool) {
		for _, name := range names {
			if n, ok := usage[name].(float64); ok && n >= 0 {
				return n, true
			}
		}
		return 0, false
	}
	text := ""
	add := func(part string) {
		if text != "" {
			text += ", "
		}
		text += part
	}
	if n, ok := number("input_tokens", "input"); ok {
		add(strconv.FormatFloat(n, 'f', 0, 64) + " in")
	}
	if n, ok := number("output_tokens", "output"); ok {
		add(strconv.FormatFloat(n, 'f', 0, 64) + " out")
	}
	if n, ok := number("cost_usd"); ok && n > 0 {
		add(fmt.Sprintf("$%.4f", n))
	}
	if whole, _ := usage["cumulative"].(bool); whole && text != "" {
		text += " so far"
	}
	return text
}
