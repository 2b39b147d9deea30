//go:build linux

package docker_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cellmux/cell/proc"
	"cellmux/engine"
	"cellmux/engine/docker"
)

// egressProgram builds the proxy as a file of its own.
func egressProgram(t *testing.T) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "egress")
	result, err := proc.New().Run(context.Background(), proc.Cmd{
		Argv: []string{"go", "build", "-o", file, "./egress/testdata/proxy"}, Dir: workingDirectory(t),
		Env: append(os.Environ(), "CGO_ENABLED=0"), Timeout: 5 * time.Minute,
	})
	if err != nil || result.ExitCode != 0 {
		t.Fatalf("build the proxy: %v: %s", err, result.Stderr)
	}
	return []string{file, docker.EgressArgument}
}

func workingDirectory(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// hostServer greets whoever connects to port 443 of this machine's own address,
// which containers reach over their bridge.
func hostServer(t *testing.T) (address string) {
	t.Helper()
	var listener net.Listener
	address = onOwnAddress(t, "443", func(address string) (err error) {
		listener, err = net.Listen("tcp", address)
		return err
	})
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = fmt.Fprintln(c, "hello from the host")
			_ = c.Close()
		}
	}()
	return address
}

// onOwnAddress listens on a port of an address of this machine that is not the
// loopback, and returns the address; it skips the test where there is none.
func onOwnAddress(t *testing.T, port string, listen func(address string) error) (ip string) {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		ip, ok := a.(*net.IPNet)
		if !ok || ip.IP.To4() == nil || ip.IP.IsLoopback() || ip.IP.IsLinkLocalUnicast() {
			continue
		}
		if listen(net.JoinHostPort(ip.IP.String(), port)) == nil {
			return ip.IP.String()
		}
	}
	t.Skipf("needs an address besides the loopback whose port %s is free", port)
	return ""
}

// direct connects from inside and prints what it hears, or "no".
func direct(address, port string) string {
	return fmt.Sprintf(`timeout 5 bash -c 'exec 3<>/dev/tcp/%s/%s && head -1 <&3' 2>/dev/null || echo no`, address, port)
}

// tunnelled does the same through the proxy; it prints the proxy's status first.
func tunnelled(target string) string {
	return fmt.Sprintf(`timeout 10 bash -c '
p=${HTTPS_PROXY#http://}; exec 3<>/dev/tcp/${p%%:*}/${p##*:}
printf "CONNECT %s HTTP/1.1\r\n\r\n" >&3; read -r _ code _ <&3; echo $code
while read -r line <&3 && [ "${line%%%%$'"'\r'"'}" ]; do :; done; head -1 <&3'`, target)
}

func TestRealAllowlistReachesListedHostsAndNothingElse(t *testing.T) {
	address := hostServer(t)
	l := newLab(t, func(o *docker.Options) { o.Egress = egressProgram(t) })
	c := l.cell(func(c *engine.Cell) {
		c.Config.Cell.Network = "allowlist"
		c.Config.Cell.NetworkAllow = []string{address}
	})
	if got := strings.Join(l.engine.Guest(c).Limits, "; "); !strings.Contains(got, address) {
		t.Errorf("the guest is told %q", got)
	}
	l.up(c)
	waitFor(t, "the proxy to listen", func() bool {
		return l.output(c, direct("cellmux-proxy", "3128")+" | head -c 2") != "no" || strings.HasPrefix(l.output(c, tunnelled(address+":443")), "200")
	})
	if got := l.output(c, tunnelled(address+":443")); got != "200\nhello from the host" {
		t.Errorf("a listed host answers %q", got)
	}
	for _, target := range []string{"192.0.2.99:443", address + ":22", "169.254.169.254:443", "example.com:443"} {
		if got := l.output(c, tunnelled(target)); !strings.HasPrefix(got, "403") {
			t.Errorf("%s answers %q, want 403", target, got)
		}
	}
	// Around the proxy there is no way: not to the listed host, not to the host's
	// end of a bridge, where an internal network alone would lead.
	if got := l.output(c, direct(address, "443")); got != "no" {
		t.Errorf("without the proxy the host answers %q", got)
	}
	gateway := l.docker("network", "inspect", "--format", "{{(index .IPAM.Config 0).Gateway}}", "--", l.networkOf(c))
	everywhere, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer everywhere.Close()
	go func() {
		for {
			conn, err := everywhere.Accept()
			if err != nil {
				return
			}
			fmt.Fprintln(conn, "reached")
			conn.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(everywhere.Addr().String())
	if got := l.output(c, direct(gateway, port)); got != "no" {
		t.Errorf("what listens on the host answers through the gateway %s: %q", gateway, got)
	}
	if got := l.output(c, "echo $HTTP_PROXY $https_proxy $NO_PROXY"); got != "http://cellmux-proxy:3128 http://cellmux-proxy:3128 localhost,127.0.0.1" {
		t.Errorf("the environment says %q", got)
	}
	if got := l.docker("container", "inspect", "--format", "{{.HostConfig.Dns}}", l.container(c)["Id"].(string)); got != "[127.0.0.1]" {
		t.Errorf("names are asked of %s", got)
	}
}

// resolver is a name server of the test's own, which remembers what it was asked
// and answers nothing.
type resolver struct {
	mu    sync.Mutex
	asked []byte
}

func newResolver(t *testing.T) (r *resolver, address string) {
	t.Helper()
	var conn net.PacketConn
	address = onOwnAddress(t, "53", func(address string) (err error) {
		conn, err = net.ListenPacket("udp", address)
		return err
	})
	t.Cleanup(func() { _ = conn.Close() })
	r = &resolver{}
	go func() {
		packet := make([]byte, 4096)
		for {
			n, from, err := conn.ReadFrom(packet)
			if err != nil {
				return
			}
			r.mu.Lock()
			r.asked = append(r.asked, packet[:n]...)
			r.mu.Unlock()
			if n > 3 { // "not implemented", so that whoever asks does not wait
				packet[2], packet[3] = packet[2]|0x80, packet[3]&0xf0|4
				_, _ = conn.WriteTo(packet[:n], from)
			}
		}
	}()
	return r, address
}

// saw tells whether it was asked for a name that holds label.
func (r *resolver) saw(label string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Contains(r.asked, []byte(label))
}

// A name server is a way out, too: in a question anything can be written. With an
// allowlist only the proxy asks one, and only for listed names.
func TestRealAllowlistAsksNoNameServer(t *testing.T) {
	names, address := newResolver(t)
	daemon := newOwnDaemon(t, "", "--dns", address)
	daemon.load(t)
	l := newLab(t, func(o *docker.Options) {
		o.Egress = egressProgram(t)
		o.Environ = append(o.Environ, "DOCKER_HOST=unix://"+daemon.socket)
	})
	open := l.cell(nil)
	l.up(open)
	l.sh(open, "timeout 20 getent hosts secret-in-the-open.example")
	if !names.saw("secret-in-the-open") {
		t.Fatal("the trap is not live: with an open network the name server is not asked")
	}
	c := l.cell(func(c *engine.Cell) {
		c.Name = "listed"
		c.Config.Cell.Network = "allowlist"
		c.Config.Cell.NetworkAllow = []string{"listed-name.example"}
	})
	l.up(c)
	for _, line := range []string{
		"timeout 20 getent hosts secret-by-libc.example",
		"timeout 20 getent ahosts secret-by-libc.listed-name.example",
		`for server in 127.0.0.11 ` + address + `; do timeout 5 bash -c 'printf "\1\1\1\0\0\1\0\0\0\0\0\0\15secret-by-udp\0\0\1\0\1" >/dev/udp/'$server'/53'; done`,
	} {
		l.sh(c, line)
	}
	waitFor(t, "the proxy to look a listed name up", func() bool {
		l.sh(c, tunnelled("listed-name.example:443"))
		return names.saw("listed-name")
	})
	if got := l.output(c, tunnelled("secret-by-proxy.example:443")+"; true"); !strings.HasPrefix(got, "403") {
		t.Errorf("a name that is not listed answers %q", got)
	}
	for _, label := range []string{"secret-by-libc", "secret-by-udp", "secret-by-proxy"} {
		if names.saw(label) {
			t.Errorf("the name server was asked for %s", label)
		}
	}
}

func (l *lab) networkOf(c engine.Cell) string {
	l.t.Helper()
	return l.docker("container", "inspect", "--format", "{{.HostConfig.NetworkMode}}", l.container(c)["Id"].(string))
}

// The proxy's image holds one file, and the proxy no right beyond its own.
func TestRealProxyIsFromScratchAndHasNoRights(t *testing.T) {
	l := newLab(t, func(o *docker.Options) { o.Egress = egressProgram(t) })
	c := l.cell(func(c *engine.Cell) {
		c.Config.Cell.Network = "allowlist"
		c.Config.Cell.NetworkAllow = []string{"example.com"}
	})
	l.up(c)
	proxy := l.docker("ps", "--quiet", "--filter", "label=dev.cellmux.egress", "--filter", "network="+l.networkOf(c))
	got := l.docker("container", "inspect", "--format",
		"{{.Config.User}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.CapDrop}} {{.HostConfig.SecurityOpt}} {{.HostConfig.Privileged}} {{len .Mounts}}", proxy)
	if got != "65534:65534 true [ALL] [no-new-privileges] false 0" {
		t.Errorf("the proxy is %s", got)
	}
	if result := l.try("exec", proxy, "sh"); result.ExitCode == 0 {
		t.Error("the proxy's image has a shell")
	}
}

func TestRealNetworkNone(t *testing.T) {
	address := hostServer(t)
	l := newLab(t, nil)
	c := l.cell(func(c *engine.Cell) { c.Config.Cell.Network = "none" })
	l.up(c)
	if got := l.output(c, "ls /sys/class/net"); got != "lo" {
		t.Errorf("the interfaces inside are %q", got)
	}
	if got := l.output(c, direct(address, "443")); got != "no" {
		t.Errorf("the host answers %q", got)
	}
}

func TestRealOpenNetworkReachesTheWorldAndNoOtherCell(t *testing.T) {
	address := hostServer(t)
	l := newLab(t, nil)
	c := l.cell(nil)
	other := l.cell(func(c *engine.Cell) { c.Name = "other" })
	l.up(c)
	l.up(other)
	if got := l.output(c, direct(address, "443")); got != "hello from the host" {
		t.Errorf("the host answers %q", got)
	}
	l.output(other, `perl -MIO::Socket::INET -e '$s=IO::Socket::INET->new(Listen=>9,LocalPort=>7777,ReuseAddr=>1) or die; exit if fork; open STDOUT,">/dev/null"; open STDERR,">/dev/null"; while($c=$s->accept){print $c "neighbour\n"; close $c}' </dev/null`)
	there := l.docker("container", "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", l.container(other)["Id"].(string))
	if got := l.output(other, direct("127.0.0.1", "7777")); got != "neighbour" {
		t.Fatalf("the neighbour does not listen: %q", got)
	}
	if got := l.output(c, direct(there, "7777")); got != "no" {
		t.Errorf("another cell answers %q", got)
	}
}
