//go:build unix

package docker_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellmux/cell/cfg"
	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/docker"
)

// said makes an engine on a docker that is a shell script: it stands for what
// the real program says where the fault cannot be had.
func said(t *testing.T, script string, environ ...string) (*docker.Docker, engine.Cell) {
	t.Helper()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	d := docker.New(docker.Options{
		Runner: proc.New(), StateDir: t.TempDir(), HostUser: "ada", Deadline: 2 * time.Second,
		Environ: append([]string{"PATH=" + bin + ":/usr/bin:/bin", "HOME=" + t.TempDir()}, environ...),
	})
	return d, engine.Cell{
		Name: "proj", Workspace: "main", Kind: engine.Docker, ProjectDir: t.TempDir(), WorkspaceHome: t.TempDir(),
		Config: cfg.CellConfig{Cell: cfg.CellSection{Image: "some/image:1"}},
	}
}

// answers is a docker that works until it is asked to do the named thing.
func answers(command, words string) string {
	return `case "$*" in
"--version") echo "Docker version 24.0.7, build afdd53b" ;;
"info"*) echo "24.0.7|linux|[name=seccomp]" ;;
` + command + `) echo "` + words + `" >&2; exit 1 ;;
"container inspect"*) echo "Error: No such container: x" >&2; exit 1 ;;
"cp "*":/etc/"*) echo "Error: Could not find the file" >&2; exit 1 ;;
esac
`
}

func TestFaultsAreSaidWithANextStep(t *testing.T) {
	cases := []struct {
		name, script string
		is           error
		says         string
	}{
		{"no daemon", `echo "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?" >&2; exit 1`, docker.ErrNoDaemon, "systemctl start docker"},
		{"no right to its socket", `echo "Got permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: dial unix /var/run/docker.sock: connect: permission denied" >&2; exit 1`, docker.ErrNoDaemon, "group docker"},
		{"a daemon that hangs", `sleep 60`, docker.ErrNoAnswer, "docker info"},
		{"a full disk while it creates", answers(`"create "*`, "Error response from daemon: mkdir /var/lib/docker/overlay2/x: no space left on device"), docker.ErrDiskFull, "cellmux image prune"},
		{"a full disk while it pulls", answers(`"image inspect"*) echo "Error: No such image: x" >&2; exit 1 ;; "pull "*`, "write /var/lib/docker/tmp/x: no space left on device"), docker.ErrDiskFull, "docker system df"},
		{"an image that nobody has", answers(`"image inspect"*) echo "Error: No such image: x" >&2; exit 1 ;; "pull "*`, "Error response from daemon: pull access denied for some/image, repository does not exist"), docker.ErrNoImage, "[cell] image"},
		{"a registry that cannot be reached", answers(`"image inspect"*) echo "Error: No such image: x" >&2; exit 1 ;; "pull "*`, `Error response from daemon: Get \"https://registry-1.docker.io/v2/\": dial tcp: lookup registry-1.docker.io on 10.0.0.1:53: no such host`), docker.ErrNoImage, "docker load"},
		{"podman's registry that cannot be reached", answers(`"image inspect"*) echo "Error: No such image: x" >&2; exit 1 ;; "pull "*`, `Error: initializing source docker://some/image:1: pinging container registry registry-1.docker.io: Get \"https://registry-1.docker.io/v2/\": dial tcp: i/o timeout`), docker.ErrNoImage, "docker load"},
		{"a port that is taken", answers(`"start "*`, "Error response from daemon: driver failed programming external connectivity: Bind for 127.0.0.1:3000 failed: port is already allocated"), docker.ErrPortTaken, "[cell] ports"},
		{"a container that is not ours", `case "$*" in "container inspect"*) echo '{"id":"x","status":"running","labels":{}}' ;; esac`, nil, "cellmux did not make"},
		{"an answer that is no JSON", `case "$*" in "container inspect"*) echo 'hello' ;; esac`, nil, "cannot be read"},
		{"words that nobody knows", answers(`"create "*`, "Error response from daemon: something \x1b[31mnew\x07"), nil, "something [31mnew"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			d, cell := said(t, c.script)
			err := d.Up(context.Background(), cell, nil)
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("Up = %v\nwant %v, and %q", err, c.is, c.says)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\x1b\x07") {
				t.Errorf("the message holds control characters: %q", err)
			}
		})
	}
}

func TestProbeSaysWhyNot(t *testing.T) {
	d, _ := said(t, `echo "Cannot connect to the Docker daemon. Is the docker daemon running?" >&2; exit 1`)
	if a := d.Probe(context.Background()); a.Usable || !strings.Contains(a.Reason, "docker is not running") {
		t.Errorf("Probe = %+v", a)
	}
	d, _ = said(t, `case "$1" in --version) echo "Docker version 24" ;; info) echo "||"; echo "Cannot connect" >&2 ;; esac`)
	if a := d.Probe(context.Background()); a.Usable || !strings.Contains(a.Reason, "docker is not running") {
		t.Errorf("a client that exits with 0 without a daemon: %+v", a)
	}
	d, _ = said(t, `case "$1" in --version) echo "Docker version 24" ;; info) echo "24|windows|" ;; esac`)
	if a := d.Probe(context.Background()); a.Usable || !strings.Contains(a.Reason, "Linux containers") {
		t.Errorf("a daemon of Windows containers: %+v", a)
	}
	d, _ = said(t, answers("never", ""))
	if a := d.Probe(context.Background()); !a.Usable || a.Version != "24.0.7" || a.Reason != "" {
		t.Errorf("a daemon that answers: %+v", a)
	}
}

func TestDockerThatIsNotInstalled(t *testing.T) {
	d := docker.New(docker.Options{Runner: proc.New(), StateDir: t.TempDir(), Environ: []string{"PATH=" + t.TempDir()}})
	if a := d.Probe(context.Background()); a.Usable || !strings.Contains(a.Reason, "install docker or podman") {
		t.Errorf("Probe = %+v", a)
	}
}

// A bind mount on another machine would be that machine's directory.
func TestDaemonOfAnotherMachineIsRefused(t *testing.T) {
	never := `case "$*" in "context inspect"*) echo "$ENDPOINT" ;; *) echo "it was asked" >&2; exit 1 ;; esac`
	refused := func(d *docker.Docker, c engine.Cell) {
		t.Helper()
		err := d.Up(context.Background(), c, nil)
		if !errors.Is(err, docker.ErrRemote) || !strings.Contains(err.Error(), "docker context use default") {
			t.Errorf("Up = %v, want a refusal with a way out", err)
		}
		if a := d.Probe(context.Background()); a.Usable || !strings.Contains(a.Reason, "another machine") {
			t.Errorf("Probe = %+v", a)
		}
	}
	for _, host := range []string{"tcp://10.0.0.1:2375", "ssh://ada:password@build", "tcp://127.0.0.1:2375"} {
		d, c := said(t, never, "DOCKER_HOST="+host)
		refused(d, c)
		if err := d.Up(context.Background(), c, nil); strings.Contains(err.Error(), "password") {
			t.Errorf("the refusal holds the address's password: %v", err)
		}
	}
	d, c := said(t, strings.ReplaceAll(never, "$ENDPOINT", "ssh://build"), "DOCKER_CONTEXT=build")
	refused(d, c)

	config := t.TempDir()
	if err := os.WriteFile(filepath.Join(config, "config.json"), []byte(`{"currentContext":"build"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d, c = said(t, strings.ReplaceAll(never, "$ENDPOINT", "tcp://10.0.0.1:2376"), "DOCKER_CONFIG="+config)
	refused(d, c)
	d, c = said(t, `case "$*" in "context inspect"*) echo "unix:///run/docker.sock" ;; *) `+"echo 'Cannot connect to the Docker daemon' >&2; exit 1 ;; esac", "DOCKER_CONFIG="+config)
	if err := d.Up(context.Background(), c, nil); !errors.Is(err, docker.ErrNoDaemon) {
		t.Errorf("a local context: %v, want that it was asked", err)
	}
}

// A real client against a daemon that accepts and never answers.
func TestRealClientOfAHungDaemonComesBackInTime(t *testing.T) {
	if _, err := proc.LookPath("docker", []string{"PATH=" + os.Getenv("PATH")}); err != nil {
		t.Skip("needs the docker client")
	}
	socket := filepath.Join(t.TempDir(), "docker.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	d := docker.New(docker.Options{
		Runner: proc.New(), StateDir: t.TempDir(), Deadline: time.Second,
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "DOCKER_HOST=unix://" + socket},
	})
	begin := time.Now()
	_, err = d.Instances(context.Background())
	if !errors.Is(err, docker.ErrNoAnswer) {
		t.Errorf("Instances = %v, want that it does not answer", err)
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}

// What the socket says is believed only where it says that our container runs.
func TestAnythingUnusualOfTheSocketIsNoAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"not ours":     "HTTP/1.1 200 OK\r\n\r\n" + `{"Id":"x","State":{"Status":"running"},"Config":{"Labels":{}}}`,
		"not there":    "HTTP/1.1 404 Not Found\r\n\r\n" + `{"message":"No such container"}`,
		"an error":     "HTTP/1.1 500 Internal Server Error\r\n\r\n{}",
		"no JSON":      "HTTP/1.1 200 OK\r\n\r\nhello",
		"no HTTP":      "hello\r\n",
		"nothing":      "",
		"another type": "HTTP/1.1 200 OK\r\n\r\n" + `{"Id":7,"State":"running"}`,
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "docker.sock")
			listener, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				for {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					_, _ = conn.Read(make([]byte, 4096))
					_, _ = conn.Write([]byte(answer))
					_ = conn.Close()
				}
			}()
			d, c := said(t, `echo "Cannot connect to the Docker daemon" >&2; exit 1`, "DOCKER_HOST=unix://"+socket)
			if err := d.Up(context.Background(), c, nil); !errors.Is(err, docker.ErrNoDaemon) {
				t.Errorf("Up = %v, want what the command says", err)
			}
		})
	}
}

// A row that cannot be read is no shorter list: somebody would conclude that
// cells are gone.
func TestListThatCannotBeReadIsNoList(t *testing.T) {
	d, _ := said(t, `case "$1" in ps) printf 'id\tproj\trunning\tUp 2 hours\nhalf a row\n' ;; esac`)
	if all, err := d.Instances(context.Background()); err == nil {
		t.Errorf("Instances = %v", all)
	}
}

func TestVolumesThatAreRefused(t *testing.T) {
	run := t.TempDir()
	socket := filepath.Join(run, "docker.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	link := filepath.Join(t.TempDir(), "innocent")
	if err := os.Symlink(socket, link); err != nil {
		t.Fatal(err)
	}
	for volume, says := range map[string]string{
		socket + ":/sock":                   "whoever reaches it owns this machine",
		run + ":/run/host":                  "whoever reaches it owns this machine",
		link + ":/sock":                     "whoever reaches it owns this machine",
		"/:/host":                           "whoever reaches it owns this machine",
		t.TempDir() + ":/src/proj":          "the cell itself has that place",
		t.TempDir() + ":/home/ada/":         "the cell itself has that place",
		t.TempDir() + ":/gitcommon":         "the cell itself has that place",
		"/no/such/directory/anywhere:/data": "/no/such/directory/anywhere",
		// What the guest made of a directory of its own since the last time.
		"PROJECT/data:/data":           "leads out of",
		"PROJECT/deep/x:/data":         "leads out of",
		"HOME/cache:/data":             "leads out of",
		"PROJECT/../up/../:/src/proj/": "the cell itself has that place",
	} {
		d, c := said(t, answers("never", ""), "DOCKER_HOST=unix://"+socket)
		secret := t.TempDir()
		if err := os.WriteFile(filepath.Join(secret, "x"), []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{filepath.Join(c.ProjectDir, "data"), filepath.Join(c.ProjectDir, "deep"), filepath.Join(c.WorkspaceHome, "cache")} {
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(secret, name); err != nil {
				t.Fatal(err)
			}
		}
		volume = strings.NewReplacer("PROJECT", c.ProjectDir, "HOME", c.WorkspaceHome).Replace(volume)
		c.Config.Cell.Volumes = []string{volume}
		if err := d.Up(context.Background(), c, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: Up = %v, want %q", volume, err, says)
		}
	}
}

// What the client itself obeys cannot travel by name; a secret cannot travel in
// another way.
func TestVariablesThatDockerItselfObeys(t *testing.T) {
	d, c := said(t, "", "DOCKER_HOST=unix:///run/own.sock", "HTTP_PROXY=http://proxy", "UNRELATED=1")
	l, err := d.Launch(engine.Spec{Cell: c, Argv: []string{"true"}, Env: []string{"PATH=/opt/bin", "DOCKER_HOST=tcp://inside", "LD_PRELOAD=/x", "TOKEN=t"}, Secrets: []string{"TOKEN"}})
	if err != nil {
		t.Fatal(err)
	}
	argv := strings.Join(l.Argv, " ")
	for _, want := range []string{"--env PATH=/opt/bin", "--env DOCKER_HOST=tcp://inside", "--env LD_PRELOAD=/x", "--env TOKEN "} {
		if !strings.Contains(argv+" ", want) {
			t.Errorf("%q is missing in %s", want, argv)
		}
	}
	env := strings.Join(l.Env, "\n") + "\n"
	for _, want := range []string{"DOCKER_HOST=unix:///run/own.sock\n", "TOKEN=t\n"} {
		if !strings.Contains(env, want) {
			t.Errorf("the client lacks %q", want)
		}
	}
	for _, not := range []string{"tcp://inside", "LD_PRELOAD", "UNRELATED", "HTTP_PROXY"} {
		if strings.Contains(env, not) {
			t.Errorf("the client has %q", not)
		}
	}
	if _, err := d.Launch(engine.Spec{Cell: c, Argv: []string{"true"}, Env: []string{"DOCKER_HOST=secret"}, Secrets: []string{"DOCKER_HOST"}}); err == nil || strings.Contains(err.Error(), "=secret") {
		t.Errorf("a secret under a name that docker obeys: %v", err)
	}
}

func TestUnknownNetworkAndUnmadeProxyAreErrors(t *testing.T) {
	d, c := said(t, answers("never", ""))
	c.Config.Cell.Network = "wifi"
	if err := d.Up(context.Background(), c, nil); err == nil || !strings.Contains(err.Error(), `"wifi"`) {
		t.Errorf("Up = %v", err)
	}
	c.Config.Cell.Network = "allowlist" // never falls back to an open network
	if err := d.Up(context.Background(), c, nil); err == nil || !strings.Contains(err.Error(), "egress proxy") {
		t.Errorf("Up = %v", err)
	}
}

// podman that answers to the name of docker keeps the user's id, and says what
// it cannot do.
func TestPodmanByAnotherName(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	d, c := said(t, `echo "$*" >>`+log+`
case "$*" in
"--version") echo "podman version 4.9.3" ;;
"info"*) echo "4.9.3|linux|name=rootless" ;;
"container inspect"*) echo "Error: no such container x" >&2; exit 125 ;;
esac`)
	if err := d.Up(context.Background(), c, nil); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(said), "--userns keep-id") {
		t.Errorf("podman was told\n%s", said)
	}
	c.Config.Cell.Network = "allowlist"
	if err := d.Up(context.Background(), c, nil); err == nil || !strings.Contains(err.Error(), "needs docker") {
		t.Errorf("Up = %v", err)
	}
}
