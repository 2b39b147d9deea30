package proc

import (
	"os"
	"strings"
)

// executable tries path as it is when it has an extension, then with those of
// PATHEXT, as cmd.exe does.
func executable(path string, env []string) (string, bool) {
	extensions := lookup(env, "PATHEXT")
	if extensions == "" {
		extensions = ".COM;.EXE;.BAT;.CMD"
	}
	for _, ext := range strings.Split(strings.ToLower(extensions), ";") {
		candidates := []string{path + ext}
		if ext != "" && strings.HasSuffix(strings.ToLower(path), ext) {
			candidates = []string{path}
		}
		for _, c := range candidates {
			if info, err := os.Stat(c); err == nil && info.Mode().IsRegular() {
				return c, true
			}
		}
	}
	return "", false
}

func sameVariable(a, b string) bool { return strings.EqualFold(a, b) }
