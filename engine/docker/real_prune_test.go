//go:build linux

package docker_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/docker"
)

// made lists the networks and proxies of a lab's engine, by the first words of
// their names, sorted.
func (l *lab) made() string {
	l.t.Helper()
	label := "label=dev.cellmux.owner=" + docker.OwnerOf(l.engine)
	names := strings.Fields(l.docker("network", "ls", "--filter", label, "--format", "{{.Name}}") + "\n" +
		l.docker("ps", "--all", "--filter", label, "--filter", "label=dev.cellmux.egress", "--format", "{{.Names}}"))
	for i, name := range names {
		names[i] = strings.Join(strings.Split(name, "-")[1:2], "")
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// allowing changes a cell to one with an allowlist.
func allowing(name string, hosts ...string) func(*engine.Cell) {
	return func(c *engine.Cell) {
		c.Name = name
		c.Config.Cell.Network, c.Config.Cell.NetworkAllow = "allowlist", hosts
	}
}

// A network and its proxy go with the last cell that needs them, running or not.
func TestRealNetworkAndProxyGoWithTheirLastCell(t *testing.T) {
	l := newLab(t, func(o *docker.Options) { o.Egress = egressProgram(t) })
	first, second, other := l.cell(allowing("first", "a.example")), l.cell(allowing("second", "a.example")), l.cell(allowing("other", "b.example"))
	open := l.cell(nil)
	for _, c := range []engine.Cell{first, second, other, open} {
		l.up(c)
	}
	l.output(second, "true")
	if err := l.engine.Down(l.ctx(), second); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		cell engine.Cell
		left string
	}{
		{first, "egress egress inner inner open outer"},
		{other, "egress inner open outer"},
		{open, "egress inner outer"},
		{second, ""},
	} {
		if err := l.engine.Remove(l.ctx(), step.cell); err != nil {
			t.Fatal(err)
		}
		if got := l.made(); got != step.left {
			t.Errorf("after %s has gone there is %q, want %q", step.cell.Name, got, step.left)
		}
	}
}

func TestRealContainerOfOtherSettingsLeavesNoNetworkBehind(t *testing.T) {
	l := newLab(t, func(o *docker.Options) { o.Egress = egressProgram(t) })
	c := l.cell(allowing("proj", "a.example"))
	for _, hosts := range [][]string{{"a.example"}, {"b.example"}, nil} {
		c.Config.Cell.NetworkAllow = hosts
		want := "egress inner outer"
		if hosts == nil {
			c.Config.Cell.Network, want = "none", ""
		}
		l.up(c)
		if got := l.made(); got != want {
			t.Errorf("with %q there is %q, want %q", hosts, got, want)
		}
		if err := l.engine.Down(l.ctx(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// dying is a runner of a cellmux that ends right after the nth call of a command.
type dying struct {
	proc.Runner
	words string
	n     int
	died  bool
}

var errDied = errors.New("this cellmux has ended")

func (d *dying) Run(ctx context.Context, cmd proc.Cmd) (proc.Result, error) {
	if d.died {
		return proc.Result{}, errDied
	}
	result, err := d.Runner.Run(ctx, cmd)
	if strings.HasPrefix(strings.Join(cmd.Argv[1:], " "), d.words) {
		d.n--
		d.died = d.n == 0
	}
	return result, err
}

// Wherever a cellmux ends on the way up, the next one makes a cell that works.
func TestRealWhatAKilledCellmuxHasBegunIsFinished(t *testing.T) {
	egress := egressProgram(t)
	for _, at := range []dying{
		{words: "network create", n: 1}, {words: "network create", n: 2},
		{words: "create", n: 1}, {words: "network connect", n: 1}, {words: "start", n: 1},
		{words: "create", n: 2}, {words: "cp --follow-link", n: 2}, {words: "start", n: 2},
	} {
		t.Run(fmt.Sprintf("%s %d", at.words, at.n), func(t *testing.T) {
			at.Runner = proc.New()
			l := newLab(t, func(o *docker.Options) { o.Egress, o.Runner = egress, &at })
			c := l.cell(allowing("proj", "127.0.0.1"))
			_ = l.engine.Up(l.ctx(), c, nil)
			if !at.died {
				t.Fatal("it has not died")
			}
			l.o.Runner = proc.New()
			l.engine = docker.New(l.o)
			l.up(c)
			if got := l.output(c, "id -un"); got != "ada" {
				t.Errorf("the user inside is %q", got)
			}
			waitFor(t, "the proxy to answer", func() bool { return strings.HasPrefix(string(l.sh(c, tunnelled("192.0.2.99:443")).Stdout), "403") })
			if err := l.engine.Remove(l.ctx(), c); err != nil {
				t.Fatal(err)
			}
			if got := l.made(); got != "" {
				t.Errorf("when the cell has gone there is %q", got)
			}
		})
	}
}

// Cells of one network that come and go at once get in nobody's way: no network
// goes from under a cell that is being made.
func TestRealCellsThatComeAndGoAtOnce(t *testing.T) {
	l := newLab(t, func(o *docker.Options) { o.Egress = egressProgram(t) })
	const cells, rounds = 3, 3
	var group sync.WaitGroup
	for i := range cells {
		c := l.cell(allowing(fmt.Sprint("cell-", i), "a.example"))
		e := docker.New(l.o) // a terminal of its own
		ctx := l.ctx()
		group.Go(func() {
			for range rounds {
				if err := e.Up(ctx, c, nil); err != nil {
					t.Errorf("Up of %s: %v", c.Name, err)
				}
				if err := e.Remove(ctx, c); err != nil {
					t.Errorf("Remove of %s: %v", c.Name, err)
				}
			}
		})
	}
	group.Wait()
	if got := l.made(); got != "" {
		t.Errorf("when all have gone there is %q", got)
	}
}

// A daemon whose pools are used up carries cells all the same.
func TestRealDaemonWithoutASubnetLeft(t *testing.T) {
	daemon := newOwnDaemon(t, "", "--default-address-pool", "base=10.212.255.0/24,size=24")
	daemon.load(t)
	if result := daemon.try("network", "create", "the-last-one"); result.ExitCode != 0 {
		t.Fatalf("%s", result.Stderr)
	}
	t.Cleanup(func() { daemon.try("network", "rm", "the-last-one") })
	if result := daemon.try("network", "create", "one-more"); result.ExitCode == 0 {
		t.Fatal("the trap is not live: docker has another subnet")
	}
	l := newLab(t, func(o *docker.Options) {
		o.Egress = egressProgram(t)
		o.Environ = append(o.Environ, "DOCKER_HOST=unix://"+daemon.socket)
	})
	open, listed := l.cell(nil), l.cell(allowing("listed", "a.example"))
	l.up(open)
	l.up(listed)
	if got := l.made(); got != "egress inner open outer" {
		t.Errorf("there is %q", got)
	}
	var subnets []netip.Prefix
	for _, text := range strings.Fields(l.docker(append([]string{"network", "inspect", "--format", "{{(index .IPAM.Config 0).Subnet}}"},
		strings.Fields(l.docker("network", "ls", "--quiet", "--filter", "label=dev.cellmux.owner"))...)...)) {
		subnet, err := netip.ParsePrefix(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range subnets {
			if subnet.Overlaps(other) {
				t.Errorf("%v overlaps %v", subnet, other)
			}
		}
		if subnets = append(subnets, subnet); subnet.Bits() != 24 {
			t.Errorf("the subnet is %v", subnet)
		}
	}
	if len(subnets) != 3 {
		t.Errorf("the subnets are %v", subnets)
	}
}
