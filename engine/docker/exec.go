package docker

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cellmux/cell/proc"
	"cellmux/engine"
)

// detachKeys replaces docker's ctrl-p ctrl-q, which would hold back every ctrl-p
// that is meant for the program. The sequence is one that nobody types; docker
// takes no empty one.
const detachKeys = "ctrl-^,ctrl-_,ctrl-^,ctrl-_"

// endScript runs inside, in any POSIX sh. It ends an execution, and may become
// the next one of the same name.
//
//go:embed end.sh
var endScript string

// marker is what the processes of an execution carry in their environment. It
// has a fixed length, so that no marker is a part of another.
func marker(execution string) string {
	digest := sha256.Sum256([]byte(execution))
	return hex.EncodeToString(digest[:16])
}

// Launch implements engine.Engine: a docker exec with the environment of now.
// Variables travel by name, with their values in the environment of the client;
// what the client itself would obey travels by value, which a secret may not. It
// reads the project's .git and starts nothing.
//
// What docker cannot carry unchanged is refused: its protocol is JSON, so words
// and values must be UTF-8.
func (d *Docker) Launch(s engine.Spec) (engine.Launch, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return engine.Launch{}, errors.New("the command is empty")
	}
	for _, word := range s.Argv {
		if !utf8.ValidString(word) {
			return engine.Launch{}, fmt.Errorf("docker cannot carry the argument %q: it is not UTF-8", word)
		}
	}
	dir := s.Dir
	if dir == "" {
		dir = d.project(s.Cell)
	}
	argv := []string{d.program(), "exec", "--interactive"}
	client := d.clientEnv()
	pairs := []string{"HOME=" + d.home(), "USER=" + d.o.HostUser}
	pairs = append(pairs, s.Env...)
	if s.TTY {
		argv = append(argv, "--tty", "--detach-keys", detachKeys)
		pairs = slices.DeleteFunc(pairs, func(p string) bool { return strings.HasPrefix(p, "TERM=") })
	}
	pairs = d.gitEnv(s.Cell, d.proxyEnv(s.Cell, pairs))
	if s.Execution != "" {
		pairs = append(pairs, proc.MarkerVariable+"="+marker(s.Execution))
	}
	argv = append(argv, "--user", d.user(s.Cell.Name), "--workdir", dir)
	for _, pair := range engine.LastWins(pairs) {
		name, value, _ := strings.Cut(pair, "=")
		switch {
		case !utf8.ValidString(pair):
			return engine.Launch{}, fmt.Errorf("docker cannot carry the variable %q: its value is not UTF-8", name)
		case !clientObeys(name):
			argv = append(argv, "--env", name)
			client = append(client, pair)
		case slices.Contains(s.Secrets, name):
			return engine.Launch{}, fmt.Errorf("the secret %s cannot be handed to a container: docker itself obeys a variable of that name; call it something else", name)
		default:
			argv = append(argv, "--env", name+"="+value)
		}
	}
	if s.TTY {
		// The terminal's own, which the hand-off adds; docker would say xterm.
		argv = append(argv, "--env", "TERM")
	}
	argv = append(argv, d.containerName(s.Cell.Name))
	if s.TTY && s.Execution != "" {
		// A pane whose client was killed leaves its program running inside. The
		// next one of the same name ends it, before two agents write one
		// conversation.
		argv = append(argv, "sh", "-c", endScript, "sh", marker(s.Execution))
	}
	return engine.Launch{Argv: append(argv, s.Argv...), Dir: "/", Env: client}, nil
}

// End implements engine.Engine. It blocks until the execution's processes are
// gone, or its deadline has passed.
func (d *Docker) End(ctx context.Context, c engine.Cell, execution string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if execution == "" {
		return errors.New("end an execution: it has no name")
	}
	result, err := d.run(ctx, d.o.Deadline, "exec", "--user", d.user(c.Name), d.containerName(c.Name),
		"sh", "-c", endScript, "sh", marker(execution))
	err = d.judge("end what runs in cell "+c.Name, result, err)
	if errors.Is(err, ErrGone) || errors.Is(err, errNotRunning) {
		return nil
	}
	return err
}

// user is who programs run as inside a cell: what its container was made for,
// else this user.
func (d *Docker) user(cell string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if u := d.users[cell]; u != "" {
		return u
	}
	return strconv.Itoa(d.o.UID) + ":" + strconv.Itoa(d.o.GID)
}
