package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBlockListsSeeThroughWhatRunsACommand(t *testing.T) {
	stubs := t.TempDir() // none of these may run for real
	for _, name := range []string{"npm", "pacman", "git", "forbidden"} {
		if err := os.WriteFile(filepath.Join(stubs, name), []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	block := func(o *RunOptions) {
		o.Env = []string{"PATH=" + stubs + ":/usr/bin:/bin"}
		o.BlockFuncs = []BlockFunc{
			CommandsBlocker([]string{"forbidden", "eval"}),
			ArgumentsBlocker("npm", []string{"install"}, []string{"-g"}),
			ArgumentsBlocker("pacman", nil, []string{"-S"}),
			ArgumentsBlocker("git", []string{"push"}, []string{"--force"}),
		}
		o.BlockNames = []string{"", "npm install -g"}
	}
	for _, source := range []string{
		"forbidden",
		"/usr/bin/forbidden x",
		"./forbidden",
		"$(echo forbidden)",
		"command forbidden",
		"exec forbidden",
		"env forbidden",
		"env -i A=1 B=2 forbidden",
		"env -u HOME -C / forbidden",
		"env -S 'A=1 forbidden x'",
		"env -- A=1 forbidden",
		"/usr/bin/env forbidden",
		"nohup forbidden",
		"xargs forbidden </dev/null",
		"echo a | xargs -n 1 -I{} forbidden {}",
		"xargs -0rn1 forbidden </dev/null",
		"sh -c forbidden",
		"bash -c 'echo a; forbidden x'",
		"bash -lc 'true && forbidden'",
		"bash -x -e -c 'forbidden'",
		"/bin/sh -c \"env forbidden\"",
		"sh -c 'sh -c \"forbidden\"'",
		"sh -c 'f() { forbidden; }; f'",
		"sh -c 'echo $(forbidden)'",
		`sh -c 'for\bidden'`,
		"timeout 5 forbidden",
		"timeout -k 1 -s KILL 5 forbidden",
		"nice -n 5 forbidden",
		"sudo -u root forbidden",
		"setsid forbidden",
		"eval true",
		"npm install -g x",
		"npm -g install x",
		"npm install x -g",
		"npm install -gf x",
		"npm install -g=x",
		"npm --prefix /p install -g q",
		"env npm install -g x",
		"pacman -Sy x",
		"pacman -yS",
		"git push --force=yes origin",
		"git -C /x push --force",
	} {
		r := runHere(t, source, block)
		if ExitCode(r.err) != 126 && !strings.Contains(source, "|") || !strings.Contains(r.stderr, "not allowed by") {
			t.Errorf("%s: ran: exit code %d, stderr %q", source, ExitCode(r.err), r.stderr)
		}
		// A block is an error of one command, which a fallback catches.
		if strings.HasPrefix(source, "exec") {
			continue
		}
		r = runHere(t, source+" || echo caught; echo on", block)
		if !strings.HasSuffix(r.stdout, "on\n") {
			t.Errorf("%s: the command ended with it: %q", source, r.stdout)
		}
	}
	for _, source := range []string{
		"echo forbidden",
		"echo forbidden | cat",
		"sh -c 'echo forbidden'",
		"env FOO=forbidden true",
		"npm install x 2>/dev/null",
		"npm install -- -g 2>/dev/null",
		"npm run install -g 2>/dev/null",
		"git push --force-with-lease 2>/dev/null",
		"pacman --sync 2>/dev/null",
		"command -v forbidden",
	} {
		if r := runHere(t, source, block); strings.Contains(r.stderr, "not allowed") {
			t.Errorf("%s: blocked: %q", source, r.stderr)
		}
	}
	r := runHere(t, "env forbidden", block)
	if r.stderr != "env: \"forbidden\" is not allowed by rule 1 of the block list\n" {
		t.Errorf("message %q", r.stderr)
	}
	r = runHere(t, "npm install -g x", block)
	if r.stderr != "npm: not allowed by \"npm install -g\" of the block list\n" {
		t.Errorf("message %q", r.stderr)
	}
}

func TestArgumentsBlockerWithNothingBlocksEveryUse(t *testing.T) {
	block := ArgumentsBlocker("rm", nil, nil)
	if !block([]string{"rm"}) || !block([]string{"rm", "-rf", "/"}) || block([]string{"rmdir"}) || block(nil) {
		t.Error("wrong")
	}
}

func FuzzBlockLists(f *testing.F) {
	for _, s := range []string{
		"forbidden", "env -S x forbidden", "xargs -n", "sh -c", "bash -lc 'sh -c \"x\"'", "timeout", "env -u", "sudo -u",
		"env -- =", "busybox sh -c 'a'", "sh -o c -c x", "\x00", "sh -c '$(", "env -S", "nice", "env env env env",
	} {
		f.Add(s, "forbidden")
	}
	f.Fuzz(func(t *testing.T, line, name string) {
		args := strings.Fields(line)
		for _, call := range seenThrough(args, 0) {
			if len(call) == 0 {
				t.Fatalf("an empty command in %q", args)
			}
			CommandsBlocker([]string{name})(call)
			ArgumentsBlocker(name, []string{"a"}, []string{"-b", "--c"})(call)
		}
		// Whatever precedes it, a command that is spelled out after a wrapper is seen.
		if len(args) > 0 && name != "" && !strings.ContainsAny(name, "=-/\\") && strings.TrimSpace(name) == name {
			found := false
			for _, call := range seenThrough([]string{"env", "nohup", name}, 0) {
				found = found || call[0] == name
			}
			if !found {
				t.Fatalf("env nohup %q is not seen", name)
			}
		}
	})
}
