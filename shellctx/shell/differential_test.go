package shell

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// diffCase is one case of testdata/differential.txt.
type diffCase struct {
	category, source, known string
}

func readDiffCases(t *testing.T) []diffCase {
	t.Helper()
	data, err := os.ReadFile("testdata/differential.txt")
	if err != nil {
		t.Fatal(err)
	}
	var cases []diffCase
	category, known := "", ""
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "", strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "== "):
			category = line[3:]
		case strings.HasPrefix(line, "~ "):
			known = line[2:]
		case strings.HasPrefix(line, "|"):
			cases[len(cases)-1].source += "\n" + line[1:]
		default:
			cases = append(cases, diffCase{category, line, known})
			known = ""
		}
	}
	return cases
}

// diffDir makes the directory in which both shells run a case.
func diffDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"in.txt":      "one\ntwo words\n",
		"out.txt":     "out\n",
		"notes.txt":   "notes\n",
		".hidden":     "",
		"lib.sh":      "LIB=loaded\nlibf() { echo from lib; }\n",
		"notexec":     "#!/bin/sh\necho no\n",
		"dir/a.c":     "",
		"dir/b.c":     "",
		"dir/sub/c.c": "",
		"noshebang*":  "echo no shebang\n",
		"badinterp*":  "#!/nosuch/interpreter\n",
	} {
		mode := os.FileMode(0o644)
		if exe, ok := strings.CutSuffix(name, "*"); ok {
			name, mode = exe, 0o755
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRunAgreesWithBash is the differential table.
func TestRunAgreesWithBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("needs bash")
	}
	cases := readDiffCases(t)
	count := make(map[string]int)
	for _, c := range cases {
		count[c.category]++
	}
	for _, category := range []string{"quoting", "expansion", "redirection", "pipelines", "control flow", "functions",
		"heredocs", "globs", "traps and exits", "background", "arithmetic", "builtins"} {
		if count[category] < 15 {
			t.Errorf("%s has %d cases, needs 15", category, count[category])
		}
	}
	if len(cases) < 300 {
		t.Errorf("%d cases, needs 300", len(cases))
	}

	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/tmp", "LC_ALL=C.UTF-8", "TMPDIR=" + os.TempDir(),
		"V=value", "E=", "P=/a/b/c.txt",
	}
	for _, c := range cases {
		t.Run(c.category, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()

			cmd := exec.CommandContext(ctx, bash, "-c", c.source)
			cmd.Env, cmd.Dir = env, diffDir(t)
			want, err := cmd.Output()
			wantCode := 0
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				wantCode = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}

			var got bytes.Buffer
			err = Run(ctx, RunOptions{Command: c.source, Cwd: diffDir(t), Env: env, Stdout: &got,
				OnLeftover: func(l *Leftover) { l.End() }})
			gotCode := ExitCode(err)

			same := got.String() == string(want) && gotCode == wantCode
			switch {
			case c.known != "" && same:
				t.Errorf("%s\nno longer differs from bash, as %q says", c.source, c.known)
			case c.known == "" && !same:
				t.Errorf("%s\nprinted %q, exit code %d (%v)\nbash: %q, exit code %d", c.source, got.String(), gotCode, err, want, wantCode)
			}
		})
	}
}
