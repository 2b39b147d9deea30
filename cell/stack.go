package cell

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// StackTag names the image or template of a stack with its modules: the stack
// alone, or "<stack>-<modules>-<8 hex digits of their digest>". The order of
// modules does not matter, duplicates count, and the slice is left as it was
// (spec/cell.txt).
func StackTag(stack string, modules []string) string {
	if len(modules) == 0 {
		return stack
	}
	sorted := slices.Sorted(slices.Values(modules))
	digest := sha256.Sum256([]byte(strings.Join(sorted, ",")))
	return stack + "-" + strings.Join(sorted, "-") + "-" + hex.EncodeToString(digest[:4])
}
