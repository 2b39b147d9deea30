//go:build unix

package docker_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellmux/engine/docker"
)

// networkWorld makes an engine on a docker that knows networks and members (rows
// of docker ps), and notes what it is asked to do.
func networkWorld(t *testing.T, networks, members, more string) (d *docker.Docker, done func() string) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"networks": networks, "members": members} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, _ = said(t, `cd `+dir+`; case "$*" in
`+more+`
"network ls"*) cat networks; exit ;;
"ps --all"*) owner=$(cat owner); sed "s/OWNER/${owner:-nobody}/" members; exit ;;
esac
echo "$*" >>done`)
	if err := os.WriteFile(filepath.Join(dir, "owner"), []byte(docker.OwnerOf(d)), 0o600); err != nil {
		t.Fatal(err)
	}
	return d, func() string {
		t.Helper()
		content, err := os.ReadFile(filepath.Join(dir, "done"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(content)
	}
}

func TestPruningLeavesWhatSomebodyNeeds(t *testing.T) {
	const networks = "cellmux-inner-aaaa\ncellmux-inner-bbbb\ncellmux-inner-cccc\ncellmux-open-dddd\ncellmux-outer-dddd\n"
	const used = "cellmux-cell\tcellmux-inner-aaaa\t\ncellmux-egress-aaaa\tcellmux-inner-aaaa,cellmux-outer-dddd\tOWNER\n"
	const unused = "cellmux-egress-bbbb\tcellmux-inner-bbbb,cellmux-outer-dddd\tOWNER\n"
	for _, c := range []struct{ what, networks, members, want string }{
		{"nothing is there", "", "", ""},
		{"one proxy is needed, another one is not", networks, used + unused,
			"rm --force --volumes cellmux-egress-bbbb\nnetwork rm cellmux-inner-bbbb\nnetwork rm cellmux-inner-cccc\nnetwork rm cellmux-open-dddd\n"},
		{"the last proxy takes the outer network along", "cellmux-inner-bbbb\ncellmux-outer-dddd\n", unused,
			"rm --force --volumes cellmux-egress-bbbb\nnetwork rm cellmux-inner-bbbb\nnetwork rm cellmux-outer-dddd\n"},
		{"a proxy that was never connected", "cellmux-outer-dddd\n", "cellmux-egress-eeee\tcellmux-outer-dddd\tOWNER\n",
			"rm --force --volumes cellmux-egress-eeee\nnetwork rm cellmux-outer-dddd\n"},
		{"a container of the user's own has come in", "cellmux-inner-bbbb\ncellmux-outer-dddd\n", unused + "mine\tbridge,cellmux-inner-bbbb\t\n", ""},
		{"somebody else's proxy of such a name", "cellmux-inner-bbbb\n", "cellmux-egress-bbbb\tcellmux-inner-bbbb\tothers\n", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			d, done := networkWorld(t, c.networks, c.members, "")
			if err := d.PruneNetworks(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got := done(); got != c.want {
				t.Errorf("it did\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestPruningConcludesNothingFromAnAnswerThatCannotBeRead(t *testing.T) {
	d, done := networkWorld(t, "cellmux-inner-aaaa\n", "half a row\n", "")
	if err := d.PruneNetworks(context.Background()); err == nil || !strings.Contains(err.Error(), "cannot read") {
		t.Errorf("PruneNetworks = %v", err)
	}
	d, done2 := networkWorld(t, "cellmux-inner-aaaa\n", "", `"ps --all"*) echo "Cannot connect to the Docker daemon" >&2; exit 1 ;;`)
	if err := d.PruneNetworks(context.Background()); err == nil {
		t.Error("a list without an answer was taken for an empty one")
	}
	if done() != "" || done2() != "" {
		t.Errorf("it did\n%s%s", done(), done2())
	}
}

// Who comes into a network after the look keeps it.
func TestPruningLeavesANetworkThatSomebodyHasJustEntered(t *testing.T) {
	d, _ := networkWorld(t, "cellmux-inner-aaaa\n", "", `"network rm"*)
	echo "Error response from daemon: error while removing network: network cellmux-inner-aaaa id 12ab has active endpoints" >&2; exit 1 ;;`)
	if err := d.PruneNetworks(context.Background()); err != nil {
		t.Error(err)
	}
}

// The cell is removed when its container is; a network that stays is another
// matter.
func TestRemoveSucceedsWhereANetworkStays(t *testing.T) {
	var log strings.Builder
	d, done := networkWorld(t, "cellmux-inner-aaaa\n", "", `"network rm"*) echo "Error response from daemon: something new" >&2; exit 1 ;;`)
	docker.LogTo(d, &log)
	_, c := said(t, "")
	if err := d.Remove(context.Background(), c); err != nil {
		t.Errorf("Remove = %v", err)
	}
	if !strings.HasPrefix(done(), "rm --force --volumes cellmux-proj-") || !strings.Contains(log.String(), "something new") {
		t.Errorf("it did\n%s and logged\n%s", done(), log.String())
	}
}

// works is a docker on which a cell comes up; create and network create are what
// the test says.
func works(more string) string {
	return `cd "$(dirname "$0")"; echo "$*" >>done
case "$*" in
` + more + `
"--version") echo "Docker version 24.0.7, build afdd53b" ;;
"info"*) echo "24.0.7|linux|[name=seccomp]" ;;
"container inspect"*) echo "Error: No such container: x" >&2; exit 1 ;;
"network inspect"*) echo "Error: No such network: x" >&2; exit 1 ;;
"cp "*":/etc/"*) echo "Error: Could not find the file" >&2; exit 1 ;;
esac`
}

// calls are those that an engine of said has made with a docker of works.
func calls(t *testing.T, d *docker.Docker, with string) (found []string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(docker.ProgramDir(d), "done"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		if strings.HasPrefix(line, with) {
			found = append(found, strings.TrimSpace(line))
		}
	}
	return found
}

// Somebody removes the network between the look at it and the container.
func TestNetworkThatGoesBeforeTheContainerComesIsMadeAgain(t *testing.T) {
	for _, call := range []string{"create", "start"} {
		d, c := said(t, works(`"`+call+` "*) test -e once || { touch once; echo "Error response from daemon: network cellmux-open-123456 not found" >&2; exit 1; } ;;`))
		if err := d.Up(context.Background(), c, nil); err != nil {
			t.Errorf("%s: Up = %v", call, err)
		}
		if got := calls(t, d, "network create"); len(got) != 2 {
			t.Errorf("%s: the network was made by %q", call, got)
		}
	}
}

const (
	noPoolOld = "Error response from daemon: could not find an available, non-overlapping IPv4 address pool among the defaults to assign to the network"
	noPoolNew = "Error response from daemon: all predefined address pools have been fully subnetted"
)

// Where docker has no subnet left, cellmux finds one that nobody has.
func TestNetworkGetsASubnetWhereDockerHasNone(t *testing.T) {
	for _, noPool := range []string{noPoolOld, noPoolNew} {
		d, c := said(t, works(fmt.Sprintf(`"network create"*--subnet*10.213.0.*|"network create"*--subnet*10.213.4.*) exit 99 ;; # that is taken
"network create"*--subnet*10.213.[12].*) echo "Error response from daemon: invalid pool request: Pool overlaps with other one on this address space" >&2; exit 1 ;;
"network create"*--subnet*) ;;
"network create"*) echo %q >&2; exit 1 ;;
"network ls --quiet"*) echo one; echo gone; echo two ;;
"network inspect"*IPAM*) echo "10.213.0.0/24 fd00::/64 "; echo "10.213.4.0/22 "; echo "Error: No such network: gone" >&2; exit 1 ;;`, noPool)))
		docker.OnAnEmptyHost(d)
		if err := d.Up(context.Background(), c, nil); err != nil {
			t.Fatalf("Up = %v", err)
		}
		made := calls(t, d, "network create")
		if len(made) != 4 || !strings.Contains(made[3], "--subnet 10.213.3.0/24 ") || !strings.Contains(made[3], "enable_icc=false cellmux-open-") {
			t.Errorf("it asked for\n%s", strings.Join(made, "\n"))
		}
	}
}

func TestNetworkWithoutAnySubnetIsSaidWithANextStep(t *testing.T) {
	d, c := said(t, works(`"network create"*--subnet*) echo "Error response from daemon: Pool overlaps with other one on this address space" >&2; exit 1 ;;
"network create"*) echo "`+noPoolOld+`" >&2; exit 1 ;;`))
	docker.OnAnEmptyHost(d)
	err := d.Up(context.Background(), c, nil)
	if err == nil || !strings.Contains(err.Error(), "docker network prune") || !strings.Contains(err.Error(), "default-address-pools") {
		t.Errorf("Up = %v", err)
	}
	if n := len(calls(t, d, "network create")); n != 17 {
		t.Errorf("%d networks were asked for, want docker's own and 16 more", n)
	}
}
