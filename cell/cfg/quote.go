package cfg

import (
	"fmt"
	"strings"
)

// QuoteTOML writes s as a TOML basic string, which holds no raw control
// character. Bytes that are not UTF-8 have no place in TOML and become U+FFFD.
func QuoteTOML(s string) string {
	var b strings.Builder
	b.Grow(len(s) + len(s)/16 + 2)
	b.WriteByte('"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case '\b':
			b.WriteString(`\b`)
		case '\t':
			b.WriteString(`\t`)
		case '\n':
			b.WriteString(`\n`)
		case '\f':
			b.WriteString(`\f`)
		case '\r':
			b.WriteString(`\r`)
		default:
			if r < 0x20 || r >= 0x7f && r < 0xa0 {
				fmt.Fprintf(&b, `\u%04X`, r)
				continue
			}
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
