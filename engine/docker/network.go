package docker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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

// An allowlist's network and its proxy's container have names of the same end.
const (
	innerPrefix = "cellmux-inner-"
	proxyPrefix = "cellmux-egress-"
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
		name := innerPrefix + id
		return network{
			mode: mode, name: name, hosts: hosts, proxy: proxyPrefix + id, image: image,
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

// lockNetworks is held where networks and proxies are made, up to the container
// that needs them, and where they are removed: what no container has is removed.
func (d *Docker) lockNetworks(ctx context.Context) (unlock func(), err error) {
	return d.lock(ctx, "networks")
}

// prepareNetwork makes what n needs and does not find, for who holds the lock of
// the networks.
func (d *Docker) prepareNetwork(ctx context.Context, n network, progress func(engine.Progress)) error {
	switch n.mode {
	case networkOpen:
		if n.name == "" {
			return nil // podman has one of its own
		}
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
	err = d.createNetwork(ctx, name, options...)
	if errors.Is(err, errNoPool) {
		err = d.createOnFreeSubnet(ctx, name, err, options)
	}
	return err
}

func (d *Docker) createNetwork(ctx context.Context, name string, options ...string) error {
	args := append([]string{"network", "create", "--label", labelOwner + "=" + d.owner}, options...)
	result, err := d.run(ctx, slow, append(args, name)...)
	if err == nil && strings.Contains(string(result.Stderr), "already exists") {
		return nil // another terminal was faster
	}
	return d.judge("make the network "+name, result, err)
}

// PruneNetworks removes networks and egress proxies that no container of a cell
// needs any more, running or not. A network in which a container of somebody
// else's stands stays.
func (d *Docker) PruneNetworks(ctx context.Context) error {
	if err := d.local(ctx); err != nil {
		return err
	}
	unlock, err := d.lockNetworks(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return d.pruneNetworks(ctx)
}

// tidyNetworks is pruneNetworks after something that has succeeded and must not
// fail for it: what stays is found by the next one.
func (d *Docker) tidyNetworks(ctx context.Context) {
	if err := d.pruneNetworks(ctx); err != nil && ctx.Err() == nil {
		d.o.Log.Warn("networks that no cell needs stay", "error", err.Error())
	}
}

// pruneNetworks is PruneNetworks for who holds the lock of the networks.
func (d *Docker) pruneNetworks(ctx context.Context) error {
	result, err := d.run(ctx, d.o.Deadline, "network", "ls", "--filter", "label="+labelOwner+"="+d.owner, "--format", "{{.Name}}")
	if err = d.judge("list the networks", result, err); err != nil {
		return err
	}
	names := strings.Fields(string(result.Stdout))
	if len(names) == 0 {
		return nil // then there is no proxy either: each stands in the outer one
	}
	members, err := d.members(ctx)
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, m := range members {
		for _, name := range m.networks {
			needed[name] = needed[name] || m.proxyOf == ""
		}
	}
	for _, m := range members {
		if m.proxyOf == "" {
			continue
		}
		if !needed[m.proxyOf] {
			if err := d.remove(ctx, m.name); err != nil {
				return err
			}
			continue
		}
		for _, name := range m.networks {
			needed[name] = true
		}
	}
	for _, name := range names {
		if needed[name] {
			continue
		}
		err := d.do(ctx, "remove the network "+name, "network", "rm", name)
		if err != nil && !errors.Is(err, errNetworkGone) && !errors.Is(err, errNetworkUsed) {
			return err
		}
	}
	return nil
}

// member is a container, of whomever, and the networks in which it stands.
type member struct {
	name     string
	networks []string
	proxyOf  string // of our egress proxies: the network that it serves
}

func (d *Docker) members(ctx context.Context) ([]member, error) {
	result, err := d.run(ctx, d.o.Deadline, "ps", "--all", "--no-trunc", "--format",
		fmt.Sprintf(`{{.Names}}\t{{.Networks}}\t{{.Label %q}}`, labelOwner))
	if err = d.judge("look who is in the networks", result, err); err != nil {
		return nil, err
	}
	var all []member
	for line := range strings.Lines(string(result.Stdout)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 {
			return nil, fmt.Errorf("look who is in the networks: %s answered a row that cellmux cannot read: %q", d.program(), line)
		}
		m := member{name: fields[0], networks: strings.Split(fields[1], ",")}
		if id, proxy := strings.CutPrefix(m.name, proxyPrefix); proxy && fields[2] == d.owner {
			m.proxyOf = innerPrefix + id
		}
		all = append(all, m)
	}
	return all, nil
}
