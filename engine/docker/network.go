package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cellmux/cell/cfg"
	"cellmux/engine"
)

// What a cell's network reaches ([cell] network).
const (
	networkOpen      = "open"
	networkNone      = "none"
	networkAllowlist = "allowlist"
)

// defaultHosts is the allowlist of a cell that lists nothing: what claude needs.
var defaultHosts = []string{"api.anthropic.com", "platform.claude.com"}

// The proxy as guests see it.
const (
	proxyName = "cellmux-proxy"
	proxyPort = "3128"
)

// network is how a cell's container is connected.
type network struct {
	mode  string
	name  string   // of the docker network; "" for none
	hosts []string // of an allowlist
	proxy string   // name of the proxy's container
	image string   // the proxy's
	args  []string // of docker create
}

// networkOf reads the configuration: the mode, and the hosts of an allowlist.
func networkOf(s cfg.CellSection) (mode string, hosts []string) {
	mode = s.Network
	if mode == "" {
		mode = networkOpen
	}
	if mode == networkAllowlist {
		hosts = slices.Compact(slices.Sorted(slices.Values(s.NetworkAllow)))
		if len(hosts) == 0 {
			hosts = defaultHosts
		}
	}
	return mode, hosts
}

func (n network) describe() string {
	if n.mode == networkAllowlist {
		return n.mode + " " + strings.Join(n.hosts, ",")
	}
	return n.mode
}

// networkOf decides how a cell is connected; it starts nothing.
func (d *Docker) networkOf(c engine.Cell) (network, error) {
	mode, hosts := networkOf(c.Config.Cell)
	d.mu.Lock()
	podman := d.facts != nil && d.facts.podman
	d.mu.Unlock()
	switch mode {
	case networkNone:
		return network{mode: mode, args: []string{"--network", "none"}}, nil
	case networkOpen:
		if podman {
			return network{mode: mode}, nil
		}
		name := "cellmux-open-" + d.owner[:6]
		return network{mode: mode, name: name, args: []string{"--network", name}}, nil
	case networkAllowlist:
		if podman {
			return network{}, errors.New(`[cell] network = "allowlist" needs docker; with podman choose "none" or "open"`)
		}
		image, err := d.egressImage()
		if err != nil {
			return network{}, err
		}
		// Cells of one workspace share a home, and so may share a network; those
		// of another must not meet them there.
		digest := sha256.Sum256([]byte(strings.Join(append([]string{d.owner, c.Workspace, image}, hosts...), "\x00")))
		id := hex.EncodeToString(digest[:4])
		name := "cellmux-inner-" + id
		return network{
			mode: mode, name: name, hosts: hosts, proxy: "cellmux-egress-" + id, image: image,
			// Docker's own resolver would carry questions about any name outside, and
			// with them data; it still knows the proxy's name without a server.
			args: []string{"--network", name, "--dns", "127.0.0.1"},
		}, nil
	}
	return network{}, fmt.Errorf(`[cell] network = %q is none of "open", "none" and "allowlist"`, mode)
}

// proxyEnv puts the proxy's address in front of the environment of a cell that
// has one; what the user sets wins, and reaches no further for it.
func (d *Docker) proxyEnv(c engine.Cell, pairs []string) []string {
	mode, _ := networkOf(c.Config.Cell)
	if mode != networkAllowlist {
		return pairs
	}
	var proxy []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		proxy = append(proxy, name+"=http://"+proxyName+":"+proxyPort)
	}
	return append(append(proxy, "NO_PROXY=localhost,127.0.0.1", "no_proxy=localhost,127.0.0.1"), pairs...)
}

// prepareNetwork makes what n needs and does not find.
func (d *Docker) prepareNetwork(ctx context.Context, n network, progress func(engine.Progress)) error {
	if n.name == "" {
		return nil
	}
	unlock, err := d.lock(ctx, "networks")
	if err != nil {
		return err
	}
	defer unlock()
	switch n.mode {
	case networkOpen:
		// Cells reach the world, but not one another.
		return d.ensureNetwork(ctx, n.name, "--opt", "com.docker.network.bridge.enable_icc=false")
	case networkAllowlist:
		progress(engine.Progress{Step: "starting the egress proxy"})
		// An internal network alone still reaches what listens on the host: its
		// bridge has an address there. Without one it does not.
		if err := d.ensureNetwork(ctx, n.name, "--internal", "--opt", "com.docker.network.bridge.inhibit_ipv4=true"); err != nil {
			return err
		}
		return d.ensureProxy(ctx, n)
	}
	return nil
}

func (d *Docker) ensureNetwork(ctx context.Context, name string, options ...string) error {
	result, err := d.run(ctx, d.o.Deadline, "network", "inspect", "--format", "{{.Id}}", name)
	if err == nil && result.ExitCode == 0 {
		return nil
	}
	if err != nil {
		return d.judge("look at the network "+name, result, err)
	}
	args := append([]string{"network", "create", "--label", labelOwner + "=" + d.owner}, options...)
	result, err = d.run(ctx, slow, append(args, name)...)
	if err == nil && strings.Contains(string(result.Stderr), "already exists") {
		return nil // another terminal was faster
	}
	return d.judge("make the network "+name, result, err)
}

// ensureProxy makes the egress proxy of an allowlist run.
func (d *Docker) ensureProxy(ctx context.Context, n network) error {
	b, found, err := d.inspect(ctx, n.proxy)
	if err != nil {
		return err
	}
	if found && b.owner != d.owner {
		return fmt.Errorf("a container %s exists that cellmux did not make: rename or remove it", n.proxy)
	}
	if found && b.status == "running" {
		return nil
	}
	if !found {
		outer := "cellmux-outer-" + d.owner[:6]
		if err := d.ensureNetwork(ctx, outer, "--opt", "com.docker.network.bridge.enable_icc=false"); err != nil {
			return err
		}
		if err := d.ensureEgressImage(ctx, n.image); err != nil {
			return err
		}
		args := []string{
			"create", "--pull", "never", "--name", n.proxy, "--hostname", proxyName, "--network", outer,
			"--label", labelOwner + "=" + d.owner, "--label", labelEgress + "=" + n.describe(),
			"--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
			"--memory", "128m", "--pids-limit", "128", "--restart", "unless-stopped", n.image,
		}
		args = append(args, d.o.Egress[1:]...)
		args = append(args, "--listen", ":"+proxyPort)
		for _, host := range n.hosts {
			args = append(args, "--allow", host)
		}
		if err := d.do(ctx, "create the egress proxy", args...); err != nil && !errors.Is(err, errNameTaken) {
			return err
		}
		result, err := d.run(ctx, slow, "network", "connect", "--alias", proxyName, n.name, n.proxy)
		if err != nil || !strings.Contains(string(result.Stderr), "already exists in network") {
			if err := d.judge("connect the egress proxy", result, err); err != nil {
				return errors.Join(err, d.remove(context.WithoutCancel(ctx), n.proxy))
			}
		}
	}
	return d.do(ctx, "start the egress proxy", "start", n.proxy)
}

// PruneNetworks removes networks and egress proxies that no container of a cell
// needs any more, running or not.
func (d *Docker) PruneNetworks(ctx context.Context) error {
	if err := d.local(ctx); err != nil {
		return err
	}
	unlock, err := d.lock(ctx, "networks")
	if err != nil {
		return err
	}
	defer unlock()
	result, err := d.run(ctx, d.o.Deadline, "network", "ls", "--filter", "label="+labelOwner+"="+d.owner, "--format", "{{.Name}}")
	if err = d.judge("list the networks", result, err); err != nil {
		return err
	}
	// Inner networks first: with them the proxies go, which hold the outer one.
	names := strings.Fields(string(result.Stdout))
	slices.Sort(names)
	for _, name := range names {
		result, err := d.run(ctx, d.o.Deadline, "ps", "--all", "--filter", "network="+name, "--format", "{{.Names}}")
		if err = d.judge("look at the network "+name, result, err); err != nil {
			return err
		}
		users := strings.Fields(string(result.Stdout))
		if id, inner := strings.CutPrefix(name, "cellmux-inner-"); inner && slices.Equal(users, []string{"cellmux-egress-" + id}) {
			if err := d.remove(ctx, users[0]); err != nil {
				return err
			}
			users = nil
		}
		if len(users) > 0 {
			continue
		}
		if err := d.do(ctx, "remove the network "+name, "network", "rm", name); err != nil && !errors.Is(err, errNetworkGone) {
			return err
		}
	}
	return nil
}

// egressImage names the proxy's image by the content of its program.
func (d *Docker) egressImage() (string, error) {
	if len(d.o.Egress) == 0 {
		return "", errors.New(`[cell] network = "allowlist" needs the egress proxy, which this cellmux was built without; choose "none" or "open"`)
	}
	file, err := os.Open(d.o.Egress[0])
	if err != nil {
		return "", fmt.Errorf("find the egress proxy: %w", err)
	}
	defer func() { _ = file.Close() }()
	if err := checkStatic(file); err != nil {
		return "", fmt.Errorf("the egress proxy %s: %w", d.o.Egress[0], err)
	}
	digest := sha256.New()
	if _, err := io.Copy(digest, file); err != nil {
		return "", fmt.Errorf("read the egress proxy: %w", err)
	}
	return "cellmux/egress:" + hex.EncodeToString(digest.Sum(nil)[:6]), nil
}

// checkStatic refuses a program that an image without any other file cannot run.
func checkStatic(file *os.File) error {
	program, err := elf.NewFile(file)
	if err != nil {
		return errors.New("it is no Linux program, and guests run Linux")
	}
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			return errors.New("it is not linked statically; build it with CGO_ENABLED=0")
		}
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}

// ensureEgressImage makes the proxy's image: from scratch, one file.
func (d *Docker) ensureEgressImage(ctx context.Context, image string) error {
	if found, err := d.hasImage(ctx, image); found || err != nil {
		return err
	}
	file, err := os.Open(d.o.Egress[0])
	if err != nil {
		return fmt.Errorf("find the egress proxy: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("find the egress proxy: %w", err)
	}
	archive, feed := io.Pipe()
	go func() { feed.CloseWithError(writeProgram(feed, file, info.Size())) }()
	defer func() { _ = archive.Close() }() // ends the writer where docker did not read it all
	result, err := d.runWith(ctx, slow, archive, "import",
		"--change", `ENTRYPOINT ["/egress"]`, "--change", "USER 65534:65534",
		"--change", "LABEL "+labelOwner+"="+d.owner+" "+labelEgress+"=image", "-", image)
	return d.judge("make the image of the egress proxy", result, err)
}

func writeProgram(to io.Writer, program io.Reader, size int64) error {
	w := tar.NewWriter(to)
	if err := w.WriteHeader(&tar.Header{Name: "egress", Mode: 0o755, Size: size}); err != nil {
		return err
	}
	if _, err := io.CopyN(w, program, size); err != nil {
		return err
	}
	return w.Close()
}

// EgressProgram finds the argv of the egress proxy: cellmux itself on Linux, and
// a cellmux-linux-<arch> beside it elsewhere. nil where there is none.
func EgressProgram(self, goos, goarch string) []string {
	if goos == "linux" {
		return []string{self, EgressArgument}
	}
	other := filepath.Join(filepath.Dir(self), "cellmux-linux-"+goarch)
	if _, err := os.Stat(other); err != nil {
		return nil
	}
	return []string{other, EgressArgument}
}

// EgressArgument is the hidden command of cellmux that serves the egress proxy.
const EgressArgument = "__egress"
