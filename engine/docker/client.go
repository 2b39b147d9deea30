package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
)

// slow bounds calls that create, start and stop. A quick answer has
// Options.Deadline: a daemon that is slower is as bad as none. What takes long by
// nature (pull, build) is bounded by its context.
const slow = 2 * time.Minute

// Errors that callers tell apart. Each is wrapped in a sentence with a next step.
var (
	ErrNotInstalled = errors.New("docker is not installed")
	ErrNoDaemon     = errors.New("docker is not running")
	ErrNoAnswer     = errors.New("docker does not answer")
	ErrRemote       = errors.New("docker's daemon is on another machine")
	ErrNoImage      = errors.New("the image is not there")
	ErrDiskFull     = errors.New("no space is left for docker")
	ErrPortTaken    = errors.New("a port is taken")
	ErrGone         = errors.New("the container is gone")

	errNetworkGone = errors.New("the container's network is gone")
	errNetworkUsed = errors.New("a container has come into the network")
	errNoPool      = errors.New("no subnet is left for another network")
	errPoolTaken   = errors.New("the subnet is taken")
	errNotRunning  = errors.New("the container does not run")
	errNameTaken   = errors.New("the container exists already")
)

// clientVariables are the variables of the host that docker and podman
// themselves need. In a guest they would mean something else: where a guest has
// one of the same name, it cannot travel by name.
var clientVariables = []string{
	"PATH", "HOME", "TMPDIR", "USER", "LOGNAME",
	"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME",
	"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS", "DOCKER_TLS_VERIFY",
	"DOCKER_API_VERSION", "DOCKER_DEFAULT_PLATFORM", "DOCKER_CONTENT_TRUST", "DOCKER_CONTENT_TRUST_SERVER",
	"CONTAINER_HOST", "CONTAINER_CONNECTION", "CONTAINERS_CONF", "CONTAINERS_REGISTRIES_CONF", "CONTAINERS_STORAGE_CONF",
	"DBUS_SESSION_BUS_ADDRESS",
}

// clientObeys tells whether a variable would change what the docker client
// itself does, if it stood in its environment.
func clientObeys(name string) bool {
	return slices.Contains(clientVariables, name) ||
		strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") ||
		name == "GODEBUG" || name == "GOTRACEBACK" || name == "SSLKEYLOGFILE"
}

// clientEnv is the environment of every call.
func (d *Docker) clientEnv() []string {
	var env []string
	for _, pair := range engine.LastWins(d.o.Environ) {
		if name, _, _ := strings.Cut(pair, "="); slices.Contains(clientVariables, name) {
			env = append(env, pair)
		}
	}
	return env
}

func (d *Docker) getenv(name string) string {
	for _, pair := range slices.Backward(d.o.Environ) {
		if value, ok := strings.CutPrefix(pair, name+"="); ok {
			return value
		}
	}
	return ""
}

// program is the command that is called.
func (d *Docker) program() string {
	if d.o.Program != "" {
		return d.o.Program
	}
	for _, name := range []string{"docker", "podman"} {
		if _, err := proc.LookPath(name, d.o.Environ); err == nil {
			return name
		}
	}
	return "docker"
}

// run calls the client. The result of a call that failed is judged by judge.
func (d *Docker) run(ctx context.Context, timeout time.Duration, args ...string) (proc.Result, error) {
	return d.runWith(ctx, timeout, nil, args...)
}

func (d *Docker) runWith(ctx context.Context, timeout time.Duration, stdin io.Reader, args ...string) (proc.Result, error) {
	return d.o.Runner.Run(ctx, proc.Cmd{
		Argv: append([]string{d.program()}, args...), Dir: "/", Env: d.clientEnv(), Stdin: stdin, Timeout: timeout,
	})
}

// do calls the client for its effect.
func (d *Docker) do(ctx context.Context, doing string, args ...string) error {
	result, err := d.run(ctx, slow, args...)
	return d.judge(doing, result, err)
}

// verdicts read what docker and podman say, lower case. The first match counts.
var verdicts = []struct {
	says *regexp.Regexp
	err  error
	next string
}{
	{regexp.MustCompile(`permission denied while trying to connect|dial unix .*: connect: permission denied|got permission denied`), ErrNoDaemon,
		"you may not use its socket: add yourself to the group docker (sudo usermod -aG docker $USER), then log in again"},
	{regexp.MustCompile(`cannot connect to the docker daemon|is the docker daemon running|error during connect|dial unix .*(no such file|connection refused)|cannot connect to podman`), ErrNoDaemon,
		"start it (sudo systemctl start docker, or Docker Desktop), then try again; cells on the host are not touched by this"},
	{regexp.MustCompile(`no space left on device|disk quota exceeded`), ErrDiskFull,
		"see docker system df, and free some with cellmux image prune or docker system prune"},
	{regexp.MustCompile(`port is already allocated|address already in use|failed to bind .*port|proxy: listen`), ErrPortTaken,
		"change [cell] ports, or write the port with nothing in front (\"8080:\") for a free one"},
	{regexp.MustCompile(`the container name .* is already in use|name .* is in use`), errNameTaken, ""},
	{regexp.MustCompile(`non-overlapping ipv4 address pool|predefined address pools have been fully subnetted`), errNoPool,
		"remove networks that nobody needs (docker network prune), or give docker more of them (default-address-pools in its daemon.json)"},
	{regexp.MustCompile(`pool overlaps with other one`), errPoolTaken, ""},
	{regexp.MustCompile(`network .* has active endpoints`), errNetworkUsed, ""},
	{regexp.MustCompile(`no such network|network [0-9a-z_.-]+ not found|could not find a network matching`), errNetworkGone, ""},
	{regexp.MustCompile(`no such container|no container with name or id`), ErrGone, "restart the slot: cellmux makes it again"},
	{regexp.MustCompile(`container [0-9a-z_.-]+ is not running|can only create exec sessions on running|container state improper|is restarting, wait`), errNotRunning, "restart the slot: cellmux starts it again"},
	{regexp.MustCompile(`no such image|unable to find image|pull access denied|manifest unknown|manifest for .* not found|image not known|repository does not exist`), ErrNoImage,
		"check the name in [cell] image, or build ours with cellmux image build"},
	{regexp.MustCompile(`(get|head) "https?://[^"]+": |pinging container registry|registry.*(no such host|i/o timeout|handshake timeout)`), ErrNoImage,
		"its registry cannot be reached: check the network, load the image by hand (docker load), or leave [cell] image out"},
}

// judge turns the answer to a call into nil or a sentence: what was attempted,
// what docker said, what to do next.
func (d *Docker) judge(doing string, result proc.Result, err error) error {
	program := filepath.Base(d.program())
	switch {
	case errors.Is(err, proc.ErrNotFound):
		return fmt.Errorf("%w: install docker or podman, or use the host engine", ErrNotInstalled)
	case errors.Is(err, proc.ErrTimeout):
		return fmt.Errorf("%s: %w in time; see whether %s info answers, and restart the daemon if it does not", doing, ErrNoAnswer, program)
	case err != nil:
		return fmt.Errorf("%s: %w", doing, err)
	case result.ExitCode == 0:
		return nil
	}
	said := firstLine(string(result.Stderr))
	lower := strings.ToLower(string(result.Stderr))
	for _, v := range verdicts {
		if !v.says.MatchString(lower) {
			continue
		}
		if v.next == "" {
			return fmt.Errorf("%s: %w", doing, v.err)
		}
		return fmt.Errorf("%s: %w: %s (%s said: %s)", doing, v.err, v.next, program, said)
	}
	if said == "" {
		said = fmt.Sprintf("nothing, and exited with %d", result.ExitCode)
	}
	return fmt.Errorf("%s: %s said: %s", doing, program, said)
}

// firstLine is what an error message may hold of the client's talk: its first
// line, without control characters, and not too long.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	line = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, line)
	line = strings.TrimPrefix(strings.TrimPrefix(line, "Error response from daemon: "), "Error: ")
	if len(line) > 400 {
		line = strings.ToValidUTF8(line[:400], "") + "…"
	}
	return line
}

// facts are what a runtime says about itself.
type facts struct {
	version  string
	podman   bool
	rootless bool // uid 0 inside is this user outside
	remapped bool // the daemon maps users away unless it is told not to
}

// Probe implements engine.Engine.
func (d *Docker) Probe(ctx context.Context) engine.Availability {
	if err := d.local(ctx); err != nil {
		return engine.Availability{Reason: err.Error()}
	}
	f, err := d.ask(ctx)
	if err != nil {
		return engine.Availability{Reason: err.Error()}
	}
	return engine.Availability{Usable: true, Version: f.version}
}

// ask gets the facts of the runtime, and keeps them.
func (d *Docker) ask(ctx context.Context) (facts, error) {
	podman, err := d.isPodman(ctx)
	if err != nil {
		return facts{}, err
	}
	format := `{{.ServerVersion}}|{{.OSType}}|{{.SecurityOptions}}`
	if podman {
		format = `{{.Version.Version}}|linux|{{if .Host.Security.Rootless}}name=rootless{{end}}{{if .Host.ServiceIsRemote}}name=remote{{end}}`
	}
	result, err := d.run(ctx, d.o.Deadline, "info", "--format", format)
	if err = d.judge("ask docker", result, err); err != nil {
		return facts{}, err
	}
	parts := strings.SplitN(strings.TrimSpace(string(result.Stdout)), "|", 3)
	// A docker client with no daemon behind it exits with 0 in some versions.
	if len(parts) != 3 || parts[0] == "" || parts[0] == "<no value>" {
		return facts{}, fmt.Errorf("ask docker: %w: %s", ErrNoDaemon, firstLine(string(result.Stderr)))
	}
	if parts[1] != "linux" {
		return facts{}, fmt.Errorf("docker runs %s containers here; switch it to Linux containers", parts[1])
	}
	f := facts{
		version: parts[0], podman: podman,
		rootless: strings.Contains(parts[2], "name=rootless"),
		remapped: strings.Contains(parts[2], "name=userns"),
	}
	if strings.Contains(parts[2], "name=remote") {
		return facts{}, d.remoteError("podman's remote service")
	}
	d.mu.Lock()
	d.facts = &f
	d.mu.Unlock()
	return f, nil
}

// known returns the facts, asking for them once.
func (d *Docker) known(ctx context.Context) (facts, error) {
	d.mu.Lock()
	f := d.facts
	d.mu.Unlock()
	if f != nil {
		return *f, nil
	}
	return d.ask(ctx)
}

// isPodman asks the program who it is: docker may be podman by another name.
func (d *Docker) isPodman(ctx context.Context) (bool, error) {
	result, err := d.run(ctx, d.o.Deadline, "--version")
	if err = d.judge("ask docker for its version", result, err); err != nil {
		return false, err
	}
	return strings.HasPrefix(strings.ToLower(string(result.Stdout)), "podman"), nil
}

// local refuses a daemon that is not on this machine: a bind mount would name a
// directory of that machine, and its owner could put anything there.
func (d *Docker) local(ctx context.Context) error {
	if host := d.getenv("DOCKER_HOST"); host != "" {
		return d.checkEndpoint(host)
	}
	if host := d.getenv("CONTAINER_HOST"); host != "" {
		return d.checkEndpoint(host)
	}
	if d.context() == "" {
		return nil
	}
	result, err := d.run(ctx, d.o.Deadline, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
	if err = d.judge("read docker's context "+d.context(), result, err); err != nil {
		return err
	}
	return d.checkEndpoint(strings.TrimSpace(string(result.Stdout)))
}

// context is the docker context in use, "" for the default one, which is local.
func (d *Docker) context() string {
	name := d.getenv("DOCKER_CONTEXT")
	if name == "" {
		dir := d.getenv("DOCKER_CONFIG")
		if dir == "" {
			dir = filepath.Join(d.getenv("HOME"), ".docker")
		}
		var config struct {
			CurrentContext string `json:"currentContext"`
		}
		// A file that docker cannot read either is docker's to complain about.
		content, err := os.ReadFile(filepath.Join(dir, "config.json"))
		if err != nil || json.Unmarshal(content, &config) != nil {
			return ""
		}
		name = config.CurrentContext
	}
	if name == "default" {
		return ""
	}
	return name
}

func (d *Docker) checkEndpoint(endpoint string) error {
	scheme, _, ok := strings.Cut(endpoint, "://")
	if !ok || scheme == "unix" || scheme == "npipe" || scheme == "fd" {
		return nil
	}
	return d.remoteError(scheme + "://…")
}

func (d *Docker) remoteError(where string) error {
	return fmt.Errorf("%w (%s): it would mount that machine's directories in place of yours; unset DOCKER_HOST or choose the local context (docker context use default)", ErrRemote, where)
}
