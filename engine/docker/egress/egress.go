// Package egress is the way out of a cell whose network is an allowlist: a proxy
// that opens tunnels to listed hosts on port 443, and nothing else.
//
// The rule it keeps: it decides by the name that was asked for and connects to
// that name itself; it forwards no request that it could not refuse, resolves
// nothing for others, and reaches neither its own machine nor the link's.
package egress

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	port           = "443"
	connectTimeout = 20 * time.Second
	headTimeout    = 20 * time.Second // for the request
	idleTimeout    = time.Hour        // of a tunnel in both directions: models think long
	maxTunnels     = 512
)

// Rules are the hosts that may be reached.
type Rules struct {
	exact  []string
	suffix []string // of "*.example.com": ".example.com"
}

// ParseRules reads host names, IP addresses and "*.name" for every host below a
// name (not the name itself).
func ParseRules(hosts []string) (Rules, error) {
	var r Rules
	for _, host := range hosts {
		name := canonical(host)
		below, wild := strings.CutPrefix(name, "*.")
		if below == "" || strings.ContainsAny(below, "*/@ \t\r\n") || strings.Contains(below, ":") && !isAddress(below) {
			return Rules{}, fmt.Errorf("the allowed host %q is no host name: write example.com, or *.example.com for all below it", host)
		}
		if wild {
			r.suffix = append(r.suffix, "."+below)
		} else {
			r.exact = append(r.exact, below)
		}
	}
	if len(hosts) == 0 {
		return Rules{}, errors.New("no host is allowed: name at least one")
	}
	return r, nil
}

// Allow tells whether a host may be reached.
func (r Rules) Allow(host string) bool {
	host = canonical(host)
	return slices.Contains(r.exact, host) ||
		slices.ContainsFunc(r.suffix, func(s string) bool { return strings.HasSuffix(host, s) && len(host) > len(s) && !isAddress(host) })
}

// canonical makes names comparable: letters are equal in both cases, and a name
// may end in a dot.
func canonical(host string) string {
	host = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(host), "."))
	return strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// Proxy serves tunnels. Its fields are set before Serve.
type Proxy struct {
	Rules Rules
	// Dial connects to an address that the rules let through; nil is the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Log gets one line for each refusal, naming the host; nil is nowhere.
	Log func(line string)
}

// Serve answers connections until ctx ends, then closes them all.
func (p *Proxy) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var all sync.WaitGroup
	defer all.Wait()
	slots := make(chan struct{}, maxTunnels)
	for {
		conn, err := listener.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			var temporary net.Error
			if errors.As(err, &temporary) && temporary.Timeout() {
				continue
			}
			return fmt.Errorf("accept connections: %w", err)
		}
		select {
		case slots <- struct{}{}:
		default: // full: whoever is inside has opened too many
			_ = conn.Close()
			continue
		}
		all.Go(func() {
			defer func() { <-slots }()
			defer func() { _ = conn.Close() }()
			end := context.AfterFunc(ctx, func() { _ = conn.Close() })
			defer end()
			p.answer(ctx, conn)
		})
	}
}

// answer reads one request of a connection, and tunnels or refuses.
func (p *Proxy) answer(ctx context.Context, conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(headTimeout))
	reader := bufio.NewReader(io.LimitReader(conn, 64<<10))
	request, err := http.ReadRequest(reader)
	if err != nil {
		return
	}
	status, reason := p.judge(request)
	var target net.Conn
	if status == 0 {
		if target, err = p.connect(ctx, request.RequestURI); err != nil {
			status, reason = http.StatusBadGateway, "cellmux could not reach the host"
		}
	}
	if status != 0 {
		p.log(fmt.Sprintf("refused %s %.200q: %s", request.Method, request.RequestURI, reason))
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s\n",
			status, http.StatusText(status), len(reason)+1, reason)
		return
	}
	defer func() { _ = target.Close() }()
	end := context.AfterFunc(ctx, func() { _ = target.Close() })
	defer end()
	_ = conn.SetReadDeadline(time.Time{})
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	// What the client sent along with its request belongs to the tunnel.
	early, _ := reader.Peek(reader.Buffered())
	if _, err := target.Write(early); err != nil {
		return
	}
	tunnel(conn, target)
}

// judge returns 0 for a request that may pass, else the status of the refusal.
func (p *Proxy) judge(request *http.Request) (status int, reason string) {
	if request.Method != http.MethodConnect {
		return http.StatusMethodNotAllowed, "cellmux lets HTTPS through alone (network = \"allowlist\")"
	}
	host, asked, err := net.SplitHostPort(request.RequestURI)
	if err != nil || host == "" {
		return http.StatusBadRequest, "the request names no host and port"
	}
	if asked != port || !p.Rules.Allow(host) {
		return http.StatusForbidden, "cellmux does not let this cell reach that host; the user may add it to [cell] network_allow"
	}
	return 0, ""
}

// connect dials an allowed host. Names are resolved here, and an answer that
// points at this machine or at the link (where clouds keep credentials) is not
// followed.
func (p *Proxy) connect(ctx context.Context, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	dial := p.Dial
	if dial == nil {
		dial = (&net.Dialer{Control: refuseOwn}).DialContext
	}
	return dial(ctx, "tcp", address)
}

var errOwn = errors.New("the name leads to this machine or its link")

// ownAddress tells whether an address is one that a tunnel must not reach.
func ownAddress(address string) bool {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return true
	}
	ip := a.Addr().Unmap()
	return ip.IsLoopback() || ip.IsUnspecified() || ip.IsLinkLocalUnicast() || ip.IsMulticast()
}

func (p *Proxy) log(line string) {
	if p.Log != nil {
		p.Log(line)
	}
}

// tunnel copies both ways until both ends have closed, or neither has said
// anything for long.
func tunnel(a, b net.Conn) {
	var both sync.WaitGroup
	pass := func(to, from net.Conn) {
		buffer := make([]byte, 32<<10)
		for {
			_ = from.SetReadDeadline(time.Now().Add(idleTimeout))
			n, err := from.Read(buffer)
			if n > 0 {
				// The other direction is alive, too.
				_ = to.SetReadDeadline(time.Now().Add(idleTimeout))
				if _, err := to.Write(buffer[:n]); err != nil {
					_ = from.Close()
					return
				}
			}
			if err != nil {
				if half, ok := to.(interface{ CloseWrite() error }); ok && errors.Is(err, io.EOF) {
					_ = half.CloseWrite()
				} else {
					_ = to.Close()
				}
				return
			}
		}
	}
	both.Go(func() { pass(a, b) })
	both.Go(func() { pass(b, a) })
	both.Wait()
}

// Main is the command: egress --listen ADDRESS --allow HOST…. It serves until
// ctx ends.
func Main(ctx context.Context, args []string, log io.Writer) error {
	flags := flag.NewFlagSet("egress", flag.ContinueOnError)
	flags.SetOutput(log)
	listen := flags.String("listen", ":3128", "address to listen on")
	var hosts []string
	flags.Func("allow", "host that may be reached on port 443; repeatable", func(host string) error {
		hosts = append(hosts, host)
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	rules, err := ParseRules(hosts)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	p := &Proxy{Rules: rules, Log: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		_, _ = fmt.Fprintln(log, line)
	}}
	return p.Serve(ctx, listener)
}
