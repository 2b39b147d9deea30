package docker

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cellmux/cell/cfg"
	"cellmux/engine"
)

// limits of a container; "" is none.
type limits struct{ memory, cpus, shm string }

// limitsOf fills the defaults of [docker] in; "0" means no limit.
func limitsOf(s cfg.DockerSection) limits {
	pick := func(value, otherwise string) string {
		switch value {
		case "":
			return otherwise
		case "0":
			return ""
		}
		return value
	}
	return limits{pick(s.MemLimit, "4g"), pick(s.CPULimit, "2"), pick(s.ShmSize, "1g")}
}

// maxProcesses keeps a fork bomb inside from taking the host's processes.
const maxProcesses = 4096

// mount is one bind mount.
type mount struct {
	host, guest string
	readOnly    bool
	note        string
	inner       bool // a part of another mount, which says all that a user needs to know
}

// argument is the mount as docker's --mount takes it: comma-separated values, so
// that any path can be written.
func (m mount) argument() string {
	fields := []string{"type=bind", "source=" + m.host, "target=" + m.guest}
	if m.readOnly {
		fields = append(fields, "readonly")
	}
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	_ = w.Write(fields) // a buffer takes everything
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// mounts lists what a cell's container shares with the host, in the order in
// which it is mounted.
func (d *Docker) mounts(c engine.Cell, r repository) ([]mount, error) {
	all := []mount{
		{host: c.ProjectDir, guest: d.project(c), note: "the project"},
		{host: c.WorkspaceHome, guest: d.home(), note: "the home of workspace " + c.Workspace},
	}
	git, err := d.gitMounts(c, r)
	if err != nil {
		return nil, err
	}
	all = append(all, git...)
	for _, text := range c.Config.Cell.Volumes {
		v, err := cfg.ParseVolume(text)
		if err != nil {
			return nil, err
		}
		real, err := d.checkVolume(c, v)
		if err != nil {
			return nil, err
		}
		all = append(all, mount{host: real, guest: v.Guest, readOnly: v.ReadOnly, note: "from devcell.toml"})
	}
	return d.protectAliases(c, r, all), nil
}

// protectAliases protects the repository where another mount shows it a second
// time: a volume that holds the project, or a workspace home that does.
func (d *Docker) protectAliases(c engine.Cell, r repository, mounts []mount) []mount {
	var gitDirs []string
	switch r.kind {
	case plainCheckout:
		dotGit := filepath.Join(c.ProjectDir, ".git")
		gitDirs = append(submodules(dotGit), dotGit)
	case linkedWorktree:
		gitDirs = []string{r.common}
	}
	var more []mount
	pinned := map[string]bool{}
	for i, m := range mounts {
		if m.inner || m.readOnly || m.guest == d.project(c) || m.guest == guestCommon {
			continue
		}
		for _, dir := range gitDirs {
			if !within(dir, m.host) {
				continue
			}
			rel, err := filepath.Rel(m.host, dir)
			if err != nil {
				continue // within has ruled it out
			}
			inside := path.Join(m.guest, filepath.ToSlash(rel))
			// Each directory on the way becomes a mount, which cannot be moved away.
			host, guest := m.host, m.guest
			for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
				host, guest = filepath.Join(host, part), path.Join(guest, part)
				if !pinned[guest] && guest != m.guest {
					pinned[guest] = true
					more = append(more, mount{host: host, guest: guest, inner: true})
				}
			}
			switch {
			case r.kind != linkedWorktree || c.Config.Git.Worktree == "rw":
				more = append(more, protect(dir, inside)...)
			case inside == m.guest:
				mounts[i].readOnly = true
			default:
				for j := range more {
					more[j].readOnly = more[j].readOnly || more[j].guest == inside
				}
			}
		}
	}
	return append(mounts, more...)
}

// checkVolume refuses a volume that would hide what a cell stands on, or hand
// over the daemon, with which a guest owns the host. It returns the directory
// behind links: one in the project or in the home is the guest's to make, and must
// lead nowhere else.
func (d *Docker) checkVolume(c engine.Cell, v cfg.Volume) (real string, err error) {
	for _, own := range []string{d.project(c), d.home(), guestCommon, "/"} {
		if path.Clean(v.Guest) == own {
			return "", fmt.Errorf("the volume %s cannot be mounted on %s: the cell itself has that place", v.Host, own)
		}
	}
	if real, err = filepath.EvalSymlinks(v.Host); err != nil {
		return "", fmt.Errorf("the volume %s: %w", v.Host, err)
	}
	for _, own := range []string{c.ProjectDir, c.WorkspaceHome} {
		top, err := filepath.EvalSymlinks(own)
		if err != nil {
			return "", fmt.Errorf("the volume %s: %w", v.Host, err)
		}
		if (within(v.Host, own) || within(v.Host, top)) && !within(real, top) {
			return "", fmt.Errorf("the volume %s is a link that leads out of %s, to %s: what runs in the cell can make such links, so name the directory itself", v.Host, own, real)
		}
	}
	for _, socket := range d.sockets() {
		if resolved, err := filepath.EvalSymlinks(socket); err == nil {
			socket = resolved
		}
		if within(socket, real) {
			return "", fmt.Errorf("the volume %s holds the socket %s: whoever reaches it owns this machine, so no cell gets it", v.Host, socket)
		}
	}
	return real, nil
}

// sockets are the places where a daemon that runs containers listens.
func (d *Docker) sockets() []string {
	all := []string{
		"/var/run/docker.sock", "/run/docker.sock", "/run/podman/podman.sock", "/run/containerd/containerd.sock",
	}
	if dir := d.getenv("XDG_RUNTIME_DIR"); dir != "" {
		all = append(all, filepath.Join(dir, "docker.sock"), filepath.Join(dir, "podman/podman.sock"))
	}
	for _, name := range []string{"DOCKER_HOST", "CONTAINER_HOST"} {
		if socket, ok := strings.CutPrefix(d.getenv(name), "unix://"); ok {
			all = append(all, socket)
		}
	}
	return all
}

func within(file, dir string) bool {
	rel, err := filepath.Rel(dir, file)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// plan is what a container is made of. Settings are what a later configuration
// is compared with; they are kept in a label and hold no value of the
// environment.
type plan struct {
	image    string
	mounts   []mount
	ports    []string
	limits   limits
	user     string
	userns   string
	network  network
	settings map[string]string
}

// plan decides what a cell's container is made of.
func (d *Docker) plan(ctx context.Context, c engine.Cell) (plan, error) {
	f, err := d.known(ctx)
	if err != nil {
		return plan{}, err
	}
	p := plan{limits: limitsOf(c.Config.Docker), user: strconv.Itoa(d.o.UID) + ":" + strconv.Itoa(d.o.GID)}
	switch {
	case f.podman && f.rootless:
		p.userns = "keep-id"
	case f.rootless:
		p.user = "0:0"
	case f.remapped:
		p.userns = "host" // else files of the project belong to a uid that means nothing
	}
	if p.mounts, err = d.mounts(c, readRepository(c.ProjectDir)); err != nil {
		return plan{}, err
	}
	for _, text := range c.Config.Cell.Ports {
		port, err := cfg.ParsePort(text)
		if err != nil {
			return plan{}, err
		}
		p.ports = append(p.ports, publish(port, c.Config.Ports.PublishIP))
	}
	image, err := d.imageOf(c)
	if err != nil {
		return plan{}, err
	}
	p.image = image.reference
	if p.network, err = d.networkOf(c); err != nil {
		return plan{}, err
	}
	p.settings = map[string]string{
		"image": p.image, "user": p.user, "hostname": hostname(c), "network": p.network.describe(),
		"memory": p.limits.memory, "processors": p.limits.cpus, "shared memory": p.limits.shm,
		"ports": strings.Join(p.ports, " "), "mounts": describeMounts(p.mounts),
	}
	return p, nil
}

func describeMounts(mounts []mount) string {
	var words []string
	for _, m := range mounts {
		words = append(words, m.argument())
	}
	return strings.Join(words, " ")
}

// publish is a port as docker's --publish takes it.
func publish(p cfg.Port, address string) string {
	if p.IP != "" {
		address = p.IP
	}
	if address == "" {
		address = "127.0.0.1"
	}
	if strings.Contains(address, ":") {
		address = "[" + address + "]"
	}
	host := ""
	if p.Host != 0 {
		host = strconv.Itoa(p.Host)
	}
	return address + ":" + host + ":" + strconv.Itoa(p.Guest) + "/" + p.Protocol
}

// changes names what of p differs from the settings of a container.
func (p plan) changes(have map[string]string) []string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(p.settings)) {
		old, now := have[key], p.settings[key]
		switch {
		case old == now:
		case key == "mounts" || len(old)+len(now) > 120:
			all = append(all, key+" changed")
		default:
			all = append(all, fmt.Sprintf("%s: %s, now %s", key, orNone(old), orNone(now)))
		}
	}
	return all
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// createArgs are the arguments that create a cell's container. Nothing of the
// environment is among them: each program gets it when it starts.
func (d *Docker) createArgs(c engine.Cell, p plan) ([]string, error) {
	settings, err := json.Marshal(p.settings)
	if err != nil {
		return nil, err
	}
	args := []string{
		"create", "--pull", "never", "--init",
		"--name", d.containerName(c.Name), "--hostname", hostname(c),
		"--label", labelOwner + "=" + d.owner, "--label", labelCell + "=" + c.Name, "--label", labelSettings + "=" + string(settings),
		"--security-opt", "no-new-privileges", "--pids-limit", strconv.Itoa(maxProcesses),
		"--user", p.user, "--workdir", d.project(c), "--stop-timeout", "2",
	}
	if p.userns != "" {
		args = append(args, "--userns", p.userns)
	}
	for _, limit := range [][2]string{{"--memory", p.limits.memory}, {"--cpus", p.limits.cpus}, {"--shm-size", p.limits.shm}} {
		if limit[1] != "" {
			args = append(args, limit[0], limit[1])
		}
	}
	args = append(args, p.network.args...)
	for _, port := range p.ports {
		args = append(args, "--publish", port)
	}
	for _, m := range p.mounts {
		args = append(args, "--mount", m.argument())
	}
	// An image's own entrypoint would decide what runs; the container only has to
	// be there. Every sleep takes this many seconds, some take no "infinity".
	return append(args, "--entrypoint", "sleep", p.image, "2147483647"), nil
}

// box is a container as it is now.
type box struct {
	id, status, owner string
	settings          map[string]string
}

func (d *Docker) inspect(ctx context.Context, name string) (box, bool, error) {
	result, err := d.run(ctx, d.o.Deadline, "container", "inspect", "--format",
		`{"id":{{json .ID}},"status":{{json .State.Status}},"labels":{{json .Config.Labels}}}`, name)
	err = d.judge("look at the container "+name, result, err)
	if errors.Is(err, ErrGone) {
		return box{}, false, nil
	}
	if err != nil {
		return box{}, false, err
	}
	var answer struct {
		ID, Status string
		Labels     map[string]string
	}
	if err := json.Unmarshal(result.Stdout, &answer); err != nil {
		return box{}, false, fmt.Errorf("look at the container %s: the answer cannot be read: %w", name, err)
	}
	return d.box(answer.ID, answer.Status, answer.Labels), true, nil
}

// box reads a container's labels, and remembers for which user it was made.
func (d *Docker) box(id, status string, labels map[string]string) box {
	b := box{id: id, status: status, owner: labels[labelOwner]}
	_ = json.Unmarshal([]byte(labels[labelSettings]), &b.settings) // unreadable: everything has changed
	if b.owner == d.owner && b.settings["user"] != "" {
		d.mu.Lock()
		d.users[labels[labelCell]] = b.settings["user"]
		d.mu.Unlock()
	}
	return b
}
