package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestRules(t *testing.T) {
	r, err := ParseRules([]string{"api.anthropic.com", "*.github.com", "10.1.2.3", "Upper.Example."})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"api.anthropic.com": true, "API.Anthropic.COM": true, "api.anthropic.com.": true,
		"anthropic.com": false, "x.api.anthropic.com": false, "api.anthropic.com.evil.org": false, "evilapi.anthropic.com": false,
		"github.com": false, "api.github.com": true, "a.b.github.com": true, "evilgithub.com": false, ".github.com": false,
		"10.1.2.3": true, "10.1.2.4": false, "upper.example": true, "": false,
	} {
		if got := r.Allow(host); got != want {
			t.Errorf("Allow(%q) = %v, want %v", host, got, want)
		}
	}
}

func TestRulesRefuseWhatIsNoHost(t *testing.T) {
	for _, host := range []string{"", "*", "*.", "https://example.com", "example.com:8443", "a b", "*.*.com", "user@host"} {
		if _, err := ParseRules([]string{host}); err == nil {
			t.Errorf("ParseRules took %q", host)
		}
	}
	if _, err := ParseRules(nil); err == nil {
		t.Error("ParseRules took an empty list: everything or nothing?")
	}
}

func TestOwnAddressesAreNotReached(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:443": true, "[::1]:443": true, "0.0.0.0:443": true, "169.254.169.254:443": true, "[fe80::1]:443": true,
		"[::ffff:127.0.0.1]:443": true, "224.0.0.1:443": true, "nonsense": true,
		"10.0.0.1:443": false, "93.184.216.34:443": false,
	} {
		if got := ownAddress(address); got != want {
			t.Errorf("ownAddress(%s) = %v, want %v", address, got, want)
		}
	}
}

// serve starts a proxy whose dials all end at the echo server, and returns a
// connection to it.
func serve(t *testing.T, dialed *[]string) func(t *testing.T) net.Conn {
	t.Helper()
	echo := listen(t)
	go func() {
		for {
			c, err := echo.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); _ = c.Close() }()
		}
	}()
	rules, err := ParseRules([]string{"allowed.example"})
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Rules: rules, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		*dialed = append(*dialed, address)
		return (&net.Dialer{}).DialContext(ctx, network, echo.Addr().String())
	}}
	listener := listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx, listener) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve: %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("Serve did not end with its context")
		}
	})
	return func(t *testing.T) net.Conn {
		c, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		return c
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// Bytes that a client sends in the packet of its request are the tunnel's first.
func TestTunnelCarriesBothWaysFromTheFirstByte(t *testing.T) {
	var dialed []string
	c := serve(t, &dialed)(t)
	fmt.Fprint(c, "CONNECT allowed.example:443 HTTP/1.1\r\nHost: allowed.example:443\r\n\r\nearly ")
	r := bufio.NewReader(c)
	response, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect})
	if err != nil || response.StatusCode != 200 {
		t.Fatalf("%v %v", response, err)
	}
	fmt.Fprint(c, "late")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err != nil || string(got) != "early late" {
		t.Errorf("got %q, %v", got, err)
	}
	if len(dialed) != 1 || dialed[0] != "allowed.example:443" {
		t.Errorf("dialed %q", dialed)
	}
}

func TestEverythingElseIsRefusedWithoutAConnection(t *testing.T) {
	var dialed []string
	connect := serve(t, &dialed)
	for request, status := range map[string]int{
		"CONNECT evil.example:443 HTTP/1.1\r\n\r\n":                               403,
		"CONNECT allowed.example:22 HTTP/1.1\r\n\r\n":                             403,
		"CONNECT allowed.example HTTP/1.1\r\n\r\n":                                400,
		"CONNECT evil.example:443 HTTP/1.1\r\nHost: allowed.example:443\r\n\r\n":  403,
		"GET http://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n":   405,
		"GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n":                         405,
		"POST https://allowed.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n": 405,
		"CONNECT allowed.example:443@evil.example:443 HTTP/1.1\r\n\r\n":           400,
	} {
		c := connect(t)
		fmt.Fprint(c, request)
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%q: %v", request, err)
			continue
		}
		if response.StatusCode != status {
			t.Errorf("%q: status %d, want %d", request, response.StatusCode, status)
		}
	}
	if len(dialed) != 0 {
		t.Errorf("dialed %q", dialed)
	}
}

func TestMainRefusesToServeEverything(t *testing.T) {
	var log strings.Builder
	if err := Main(context.Background(), []string{"--listen", "127.0.0.1:0"}, &log); err == nil {
		t.Error("it served without a list")
	}
}
