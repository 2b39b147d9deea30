package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"cellmux/cell/proc"
)

// The oldest tmux that has what we use: client flags at attach, subscriptions
// and loops over panes came with 3.2.
const minMajor, minMinor = 3, 2

// supported says whether a version, as tmux -V and #{version} write it, is new
// enough: "3.3a", "next-3.6", "3.2-rc3". What has no number, such as
// "master", is a build from source, and taken to be new.
func supported(version string) bool {
	i := strings.IndexAny(version, "0123456789")
	if i < 0 || strings.HasPrefix(version, "openbsd-") {
		return true // OpenBSD's own tmux counts OpenBSD releases
	}
	majorText, rest, _ := strings.Cut(version[i:], ".")
	major, err := strconv.Atoi(majorText)
	if err != nil {
		return true
	}
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	minor, _ := strconv.Atoi(rest[:end])
	return major > minMajor || major == minMajor && minor >= minMinor
}

// Probe starts the tmux program once to learn its version. The error is a
// sentence with the next step, and wraps proc.ErrNotFound, ErrOld or
// proc.ErrTimeout.
func (s *Server) Probe(ctx context.Context) (version string, err error) {
	res, err := s.opts.Runner.Run(ctx, proc.Cmd{
		Argv: []string{s.program(), "-V"}, Dir: "/", Env: s.env(), Timeout: s.opts.Timeout,
	})
	switch {
	case errors.Is(err, proc.ErrNotFound):
		return "", fmt.Errorf("tmux is not installed; install the package tmux, %d.%d or later: %w", minMajor, minMinor, err)
	case err != nil:
		return "", fmt.Errorf("ask tmux for its version: %w", err)
	}
	version = strings.TrimPrefix(strings.TrimSpace(string(res.Stdout)), "tmux ")
	if res.ExitCode != 0 || version == "" {
		return "", fmt.Errorf("ask %s for its version: it exited with %d", s.program(), res.ExitCode)
	}
	if !supported(version) {
		return version, fmt.Errorf("%w: this is %s, and cellmux needs %d.%d or later; upgrade the package tmux",
			ErrOld, version, minMajor, minMinor)
	}
	return version, nil
}
