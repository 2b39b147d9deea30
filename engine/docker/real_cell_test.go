//go:build linux

package docker_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cellmux/cell"
	"cellmux/engine"
	"cellmux/engine/docker"
)

// container is what docker inspect says of a cell's only container.
func (l *lab) container(c engine.Cell) map[string]any {
	l.t.Helper()
	ids := strings.Fields(l.docker("ps", "--all", "--quiet", "--filter", "label=dev.cellmux.cell="+c.Name, "--filter", "volume="+c.ProjectDir))
	if len(ids) != 1 {
		l.t.Fatalf("%d containers carry the cell's label", len(ids))
	}
	var all []map[string]any
	if err := json.Unmarshal([]byte(l.docker("container", "inspect", ids[0])), &all); err != nil {
		l.t.Fatal(err)
	}
	return all[0]
}

func TestRealContainerIsNotPrivilegedAndIsLimited(t *testing.T) {
	l := newLab(t, nil)
	c := l.cell(func(c *engine.Cell) {
		c.Config.Docker.MemLimit, c.Config.Docker.CPULimit, c.Config.Docker.ShmSize = "256m", "1.5", "32m"
	})
	l.up(c)
	host := l.container(c)["HostConfig"].(map[string]any)
	for key, want := range map[string]any{
		"Privileged": false, "Memory": float64(256 << 20), "NanoCpus": 1.5e9, "ShmSize": float64(32 << 20),
		"PidsLimit": float64(4096), "Init": true, "PidMode": "", "IpcMode": "private", "CapAdd": nil,
	} {
		if got := host[key]; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	if got := host["SecurityOpt"]; !slices.Contains(got.([]any), any("no-new-privileges")) {
		t.Errorf("SecurityOpt is %v", got)
	}
	var mounted []string
	for _, m := range l.container(c)["Mounts"].([]any) {
		mounted = append(mounted, m.(map[string]any)["Source"].(string))
	}
	slices.Sort(mounted)
	want := []string{c.ProjectDir, c.WorkspaceHome}
	slices.Sort(want)
	if !slices.Equal(mounted, want) {
		t.Errorf("mounted are %q, want %q alone", mounted, want)
	}
	if got := l.output(c, "cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max"); got != strconv.Itoa(256<<20) {
		t.Errorf("the memory limit inside is %s", got)
	}
	if got := l.output(c, "cat /proc/1/comm"); got != "docker-init" {
		t.Errorf("the first process is %s, which reaps nothing", got)
	}
	if got := l.output(c, "grep NoNewPrivs /proc/self/status"); !strings.HasSuffix(got, "1") {
		t.Errorf("%s", got)
	}
}

func TestRealZeroIsNoLimit(t *testing.T) {
	l := newLab(t, nil)
	c := l.cell(func(c *engine.Cell) { c.Config.Docker.MemLimit, c.Config.Docker.CPULimit = "0", "0" })
	l.up(c)
	host := l.container(c)["HostConfig"].(map[string]any)
	if host["Memory"] != float64(0) || host["NanoCpus"] != float64(0) {
		t.Errorf("memory %v, processors %v", host["Memory"], host["NanoCpus"])
	}
}

// The user inside has the uid and gid of the user outside, a name, a home that
// is the workspace's, and owns what it makes, seen from both sides.
func TestRealUserInsideIsTheUserOutside(t *testing.T) {
	const uid, gid = 12345, 23456
	l := newLab(t, func(o *docker.Options) { o.UID, o.GID = uid, gid })
	c := l.cell(nil)
	for _, dir := range []string{c.ProjectDir, c.WorkspaceHome} {
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Skipf("needs root, to own a project as another user: %v", err)
		}
		// The test's own temporary directories are closed to others.
		for d := filepath.Dir(dir); d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	l.up(c)
	got := l.output(c, `id -u; id -g; id -un; id -gn; echo $HOME; echo ~; getent passwd $(id -u) | cut -d: -f6`)
	want := "12345\n23456\nada\nada\n/home/ada\n/home/ada\n/home/ada"
	if got != want {
		t.Errorf("inside:\n%s\nwant:\n%s", got, want)
	}
	l.output(c, "echo x > made && mkdir sub && echo y > ~/made")
	for _, file := range []string{filepath.Join(c.ProjectDir, "made"), filepath.Join(c.ProjectDir, "sub"), filepath.Join(c.WorkspaceHome, "made")} {
		info, err := os.Stat(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if st := info.Sys().(*syscall.Stat_t); st.Uid != uid || st.Gid != gid {
			t.Errorf("%s belongs to %d:%d outside", file, st.Uid, st.Gid)
		}
	}
	if result := l.sh(c, "echo x > /etc/hosts"); result.ExitCode == 0 {
		t.Error("a user of the host may write the system inside")
	}
}

// A uid that the image knows by another name gets the host user's name and home.
func TestRealUserOfTheImageGivesWay(t *testing.T) {
	l := newLab(t, func(o *docker.Options) { o.UID, o.GID = 1, 1 }) // daemon of Debian
	c := l.cell(nil)
	l.up(c)
	if got := l.output(c, "id -un; getent passwd 1 | cut -d: -f1,6; getent passwd daemon"); got != "ada\nada:/home/ada\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin" {
		t.Errorf("inside: %q", got)
	}
}

// What an image says of itself decides nothing: not what runs, nor as whom, nor
// where; and what it makes the daemon keep goes with its container.
func TestRealImageDecidesNeitherProgramNorUser(t *testing.T) {
	l := newLab(t, nil)
	id := l.docker("create", "--network", "none", testImage, "true")
	image := "cellmux-test:opinion-" + id[:12]
	l.docker("commit", "--change", "USER 1234:1234", "--change", `ENTRYPOINT ["/bin/false"]`, "--change", `CMD ["/bin/false"]`,
		"--change", "VOLUME /kept", "--change", "WORKDIR /nowhere", "--change", "ENV HOME=/elsewhere", id, image)
	l.docker("rm", id)
	t.Cleanup(func() { l.docker("image", "rm", image) })
	c := l.cell(func(c *engine.Cell) { c.Config.Cell.Image = image })
	l.up(c)
	if got := l.output(c, "id -u; id -un; pwd; echo $HOME"); got != fmt.Sprintf("%d\nada\n/src/proj\n/home/ada", l.o.UID) {
		t.Errorf("inside: %q", got)
	}
	volume := l.docker("container", "inspect", "--format", `{{range .Mounts}}{{if eq .Type "volume"}}{{.Name}}{{end}}{{end}}`, l.container(c)["Id"].(string))
	if volume == "" {
		t.Fatal("the image's volume is not there")
	}
	begin := time.Now()
	if err := l.engine.Down(l.ctx(), c); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > 30*time.Second {
		t.Errorf("the image's own signal held the end up: %v", took)
	}
	if err := l.engine.Remove(l.ctx(), c); err != nil {
		t.Fatal(err)
	}
	if result := l.try("volume", "inspect", volume); result.ExitCode == 0 {
		t.Errorf("the volume %s outlived its container", volume)
	}
}

func TestRealEnvironmentIsThatOfNow(t *testing.T) {
	l := newLab(t, nil)
	c := l.cell(nil)
	l.up(c)
	first := l.output(c, `echo "$GREETING"`, "GREETING=one")
	second := l.output(c, `echo "$GREETING"`, "GREETING=two")
	if first != "one" || second != "two" {
		t.Errorf("got %q, then %q", first, second)
	}
	// Nothing that a program gets is kept in the container.
	if config := l.docker("container", "inspect", "--format", "{{json .Config.Env}}", l.container(c)["Id"].(string)); strings.Contains(config, "GREETING") {
		t.Errorf("docker inspect shows %s", config)
	}
}

// The whole environment inside, pair by pair, against cell.GuestEnv: what is more
// than that is named here.
func TestRealEnvironmentIsGuestEnvPairByPair(t *testing.T) {
	l := newLab(t, nil)
	c := l.cell(nil)
	l.up(c)
	in := cell.EnvInput{
		WorkspaceName: "main", CellName: "proj-0", ProjectDir: "/src/proj", Timezone: "Europe/Prague",
		Env: map[string]string{"PATH": "/opt/own:/usr/bin:/bin", "A": "multi\nline"}, Mise: map[string]string{"node": "22"},
	}
	pairs := cell.GuestEnv(in)
	got := strings.Split(strings.TrimSuffix(string(l.sh(c, "exec env -0", pairs...).Stdout), "\x00"), "\x00")
	want := append(engine.LastWins(pairs), "HOME=/home/ada", "USER=ada")
	for _, pair := range want {
		if !slices.Contains(got, pair) {
			t.Errorf("%q is missing inside", pair)
		}
	}
	for _, pair := range got {
		name, _, _ := strings.Cut(pair, "=")
		if !slices.Contains(want, pair) && !slices.Contains([]string{"HOSTNAME", "PWD", "SHLVL", "_", "OLDPWD"}, name) {
			t.Errorf("%q is inside, and nobody put it there", pair)
		}
	}
}

func TestRealPortsAreOnTheLoopbackUnlessToldOtherwise(t *testing.T) {
	l := newLab(t, nil)
	free := func() string {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer lis.Close()
		_, port, _ := net.SplitHostPort(lis.Addr().String())
		return port
	}
	fixed, open := free(), free()
	c := l.cell(func(c *engine.Cell) {
		c.Config.Cell.Ports = []string{fixed + ":3000", "4000:", "0.0.0.0:" + open + ":5000", "6000:/udp"}
	})
	l.up(c)
	ports := l.container(c)["NetworkSettings"].(map[string]any)["Ports"].(map[string]any)
	for inside, want := range map[string]string{"3000/tcp": "127.0.0.1", "4000/tcp": "127.0.0.1", "5000/tcp": "0.0.0.0", "6000/udp": "127.0.0.1"} {
		bound, _ := ports[inside].([]any)
		if len(bound) != 1 || bound[0].(map[string]any)["HostIp"] != want {
			t.Errorf("%s is bound to %v, want %s alone", inside, bound, want)
		}
	}
	if got := ports["3000/tcp"].([]any)[0].(map[string]any)["HostPort"]; got != fixed {
		t.Errorf("3000 is on %v, want %s", got, fixed)
	}
}

func TestRealTakenPortIsSaidAndTheCellCanStartLater(t *testing.T) {
	l := newLab(t, nil)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	c := l.cell(func(c *engine.Cell) { c.Config.Cell.Ports = []string{port} })
	err = l.engine.Up(l.ctx(), c, nil)
	if !errors.Is(err, docker.ErrPortTaken) || !strings.Contains(err.Error(), "[cell] ports") {
		t.Errorf("Up = %v, want that a port is taken, and what to do", err)
	}
	taken.Close()
	l.up(c)
}

func TestRealPathsOfAnyKindAreMounted(t *testing.T) {
	l := newLab(t, nil)
	odd := filepath.Join(t.TempDir(), "a,b \"c\" d:e='f' \n$(g) é")
	if err := os.Mkdir(odd, 0o755); err != nil {
		t.Fatal(err)
	}
	c := l.cell(func(c *engine.Cell) { c.ProjectDir = odd })
	l.up(c)
	l.output(c, "echo here > file")
	if content, err := os.ReadFile(filepath.Join(odd, "file")); err != nil || string(content) != "here\n" {
		t.Errorf("the project holds %q, %v", content, err)
	}
}

func TestRealVolumes(t *testing.T) {
	l := newLab(t, nil)
	data, fixed := t.TempDir(), t.TempDir()
	c := l.cell(func(c *engine.Cell) {
		c.Config.Cell.Volumes = []string{data + ":/data", fixed + ":/fixed:ro"}
	})
	l.up(c)
	l.output(c, "echo x > /data/file")
	if _, err := os.Stat(filepath.Join(data, "file")); err != nil {
		t.Error(err)
	}
	if result := l.sh(c, "echo x > /fixed/file"); result.ExitCode == 0 {
		t.Error("a read-only volume was written")
	}
}

// Two terminals that open one cell at once make one container.
func TestRealTwoTerminalsOnOneCell(t *testing.T) {
	l := newLab(t, nil)
	c := l.cell(nil)
	other := docker.New(l.o) // another process has an engine of its own
	engines := []*docker.Docker{l.engine, other, l.engine, other}
	errs := make([]error, len(engines))
	var all sync.WaitGroup
	for i, e := range engines {
		all.Go(func() { errs[i] = e.Up(l.ctx(), c, nil) })
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			t.Errorf("Up: %v", err)
		}
	}
	l.container(c)
	if got := l.output(c, "id -un"); got != "ada" {
		t.Errorf("inside, the user is %s", got)
	}
}

// drift is Drift of a cell's container as Instances has it.
func (l *lab) drift(c engine.Cell) ([]string, error) {
	l.t.Helper()
	all, err := l.engine.Instances(l.ctx())
	if err != nil {
		l.t.Fatal(err)
	}
	for _, i := range all {
		if i.Cell == c.Name {
			return l.engine.Drift(l.ctx(), c, i)
		}
	}
	l.t.Fatalf("no instance of %s: %+v", c.Name, all)
	return nil, nil
}

// Changed settings wait for the user while somebody may be inside, and are taken
// over when the container was down anyway.
func TestRealChangedConfigWaitsForARestart(t *testing.T) {
	l := newLab(t, nil)
	c := l.cell(nil)
	l.up(c)
	id := l.container(c)["Id"]
	if drift, err := l.drift(c); err != nil || drift != nil {
		t.Errorf("Drift of nothing = %q, %v", drift, err)
	}
	c.Config.Docker.MemLimit = "300m"
	c.Config.Cell.Ports = []string{"4000:"}
	drift, err := l.drift(c)
	if want := []string{"memory: 4g, now 300m", "ports: none, now 127.0.0.1::4000/tcp"}; err != nil || !slices.Equal(drift, want) {
		t.Errorf("Drift = %q, %v; want %q", drift, err, want)
	}
	l.up(c)
	if got := l.container(c)["Id"]; got != id {
		t.Fatal("the container was replaced under whoever is in it")
	}
	if err := l.engine.Down(l.ctx(), c); err != nil {
		t.Fatal(err)
	}
	l.up(c)
	if got := l.container(c)["Id"]; got == id {
		t.Error("the new settings were not taken over")
	}
	if drift, err := l.drift(c); err != nil || drift != nil {
		t.Errorf("Drift after it = %q, %v", drift, err)
	}
}

func TestRealIdleCellGoesDownAndABusyOneDoesNot(t *testing.T) {
	l := newLab(t, nil)
	c := l.cell(nil)
	l.up(c)
	l.output(c, "setsid sleep 1000 >/dev/null 2>&1 </dev/null & echo started")
	if down, err := l.engine.DownIfIdle(l.ctx(), c); err != nil || down {
		t.Fatalf("DownIfIdle under a running program = %v, %v", down, err)
	}
	l.output(c, `for p in /proc/[0-9]*; do case $(tr '\0' ' ' <$p/cmdline 2>/dev/null) in 'sleep 1000 ') kill -9 ${p#/proc/} ;; esac; done`)
	waitFor(t, "the program to be gone", func() bool {
		down, err := l.engine.DownIfIdle(l.ctx(), c)
		return err == nil && down
	})
	if down, err := l.engine.DownIfIdle(l.ctx(), c); err != nil || down {
		t.Errorf("DownIfIdle of a cell that is down = %v, %v", down, err)
	}
}
