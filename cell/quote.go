package cell

import "strings"

// bareBytes need no quoting in any POSIX shell, wherever in a word they stand.
const bareBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"

// ShellQuote returns s as exactly one word of a POSIX shell (spec/cell.txt).
// Words of letters, digits and _@%+=:,./- alone stay as they are. It is about
// bytes: a string that is not UTF-8 survives, and no shell takes a NUL.
func ShellQuote(s string) string {
	if s != "" && strings.Trim(s, bareBytes) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// ShellJoin quotes each word and joins them with spaces: a POSIX shell splits
// the result back into the same words. No words give "".
func ShellJoin(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = ShellQuote(word)
	}
	return strings.Join(quoted, " ")
}
