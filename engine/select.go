package engine

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"cellmux/cell"
)

// Auto is the word for "docker where it can carry this agent, else the host".
const Auto = "auto"

// kinds are the engines' words, in the order in which messages list them.
var kinds = []Kind{Host, Docker, Tart, Winkit, MicroVM}

// Choice is what was said about the engine of a new cell. Empty fields were not
// said.
type Choice struct {
	EngineFlag   string // --engine
	OSFlag       string // --os
	ConfigEngine string // [cell] engine
	ConfigOS     string // [cell] os
	Agent        string // name or command line of the cell's first agent, for auto
	HostOS       string // "" is this one, as GOOS
}

// Selection is the engine that a cell keeps for life, and why.
type Selection struct {
	Kind   Kind
	Reason string // "asked for by --engine", "auto: docker 24.0.7 answers", …
	Notes  []string
}

// Select chooses a new cell's engine: --engine over --os over [cell] engine over
// [cell] os over the host (issue G). An engine that was asked for and cannot be
// used is an error that says why, never another engine; only auto weighs, and it
// never takes a microVM, which nobody gets without asking. probe may block and
// obeys ctx.
func Select(ctx context.Context, c Choice, probe func(context.Context, Kind) Availability) (Selection, error) {
	if c.HostOS == "" {
		c.HostOS = runtime.GOOS
	}
	s, auto, err := c.decide()
	if err != nil {
		return Selection{}, err
	}
	if auto {
		return c.weigh(ctx, probe), nil
	}
	if s.Kind == Host {
		return s, nil
	}
	if a := probe(ctx, s.Kind); !a.Usable {
		return Selection{}, fmt.Errorf("engine %s (%s) cannot be used: %s", s.Kind, s.Reason, a.Reason)
	}
	return s, nil
}

// decide applies the precedence; auto tells that the answer is to weigh.
func (c Choice) decide() (s Selection, auto bool, err error) {
	if c.EngineFlag != "" && c.OSFlag != "" {
		if err := c.compatible(); err != nil {
			return Selection{}, false, err
		}
	}
	for _, source := range []struct {
		name, value string
		read        func(string) (Kind, string, error)
	}{
		{"--engine", c.EngineFlag, readEngine},
		{"--os", c.OSFlag, readOS},
		{"[cell] engine", c.ConfigEngine, readEngine},
		{"[cell] os", c.ConfigOS, readOS},
	} {
		if source.value == "" {
			continue
		}
		kind, note, err := source.read(source.value)
		if err != nil {
			return Selection{}, false, fmt.Errorf("%s: %w", source.name, err)
		}
		s := Selection{Kind: kind, Reason: "asked for by " + source.name}
		if note != "" {
			s.Notes = []string{source.name + ": " + note}
		}
		return s, kind == Auto, nil
	}
	return Selection{Kind: Host, Reason: "the default"}, false, nil
}

// weigh is auto: a known agent goes into docker when a runtime answers. The host
// narrows the environment of the same agents, so it is the safe next best for
// them; a command of the user's own would inherit everything on either.
func (c Choice) weigh(ctx context.Context, probe func(context.Context, Kind) Availability) Selection {
	if _, known := cell.KnownAgent(c.Agent); !known {
		return Selection{Kind: Host, Reason: "auto: the host, since " + quotedOr(c.Agent, "the first pane") + " is not one of the agents whose needs are known"}
	}
	a := probe(ctx, Docker)
	if !a.Usable {
		return Selection{Kind: Host, Reason: "auto: the host with a narrowed environment, since docker cannot be used: " + a.Reason}
	}
	return Selection{Kind: Docker, Reason: strings.Join(strings.Fields("auto: docker "+a.Version+" answers"), " ")}
}

func quotedOr(command, otherwise string) string {
	if command == "" {
		return otherwise
	}
	return fmt.Sprintf("%q", command)
}

// compatible checks the two flags against each other: they must name the same
// engine, or an engine that runs that system besides.
func (c Choice) compatible() error {
	kind, _, err := readEngine(c.EngineFlag)
	if err != nil {
		return fmt.Errorf("--engine: %w", err)
	}
	byOS, _, err := readOS(c.OSFlag)
	if err != nil {
		return fmt.Errorf("--os: %w", err)
	}
	hostOS := map[string]Kind{"linux": Docker, "darwin": Tart, "windows": Winkit}[c.HostOS]
	switch {
	case kind == byOS,
		kind == MicroVM && byOS == Docker, // its guests are Linux, too
		kind == Host && byOS == hostOS:
		return nil
	}
	return fmt.Errorf("--os %s and --engine %s are incompatible: --os %[1]s means engine %[3]s; give one of the two", c.OSFlag, c.EngineFlag, byOS)
}

func readEngine(word string) (kind Kind, note string, err error) {
	switch word {
	case Auto:
		return Auto, "", nil
	case "qemu":
		return Winkit, `engine "qemu" is called "winkit" now`, nil
	case "libvirt", "vagrant":
		return "", "", fmt.Errorf("engine %q is retired; use docker for Linux, tart for macOS or winkit for Windows", word)
	}
	if slices.Contains(kinds, Kind(word)) {
		return Kind(word), "", nil
	}
	return "", "", fmt.Errorf("there is no engine %q; the engines are %s and %s", word, joinKinds(kinds), Auto)
}

func readOS(word string) (kind Kind, note string, err error) {
	switch word {
	case "linux":
		return Docker, "", nil
	case "macos":
		return Tart, "", nil
	case "windows", "winpe":
		return Winkit, "", nil
	}
	return "", "", fmt.Errorf("there is no system %q; the systems are linux, macos, windows and winpe", word)
}

func joinKinds(kinds []Kind) string {
	words := make([]string, len(kinds))
	for i, k := range kinds {
		words[i] = string(k)
	}
	return strings.Join(words, ", ")
}
