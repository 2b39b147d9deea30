package cfg

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Port is a port of a cell on the host.
type Port struct {
	IP       string // of the host; "" is [ports] publish_ip
	Host     int    // 0 is a free one
	Guest    int
	Protocol string // tcp or udp
}

// ParsePort reads "3000" (the same on both sides), "8080:3000", or "8080:" (the
// cell's 8080 on a free port of the host), each with an optional "/tcp" or "/udp"
// behind and, where there is a colon, an address of the host in front:
// "0.0.0.0:8080:3000", "[::1]:8080:3000".
func ParsePort(s string) (Port, error) {
	fault := func(format string, args ...any) (Port, error) {
		return Port{}, fmt.Errorf("port %s: "+format, append([]any{QuoteTOML(s)}, args...)...)
	}
	ports, protocol, given := strings.Cut(s, "/")
	p := Port{Protocol: "tcp"}
	if given {
		if protocol != "tcp" && protocol != "udp" {
			return fault("the protocol must be tcp or udp")
		}
		p.Protocol = protocol
	}
	rest, last, split := cutLast(ports, ":")
	if !split {
		n, ok := portNumber(ports)
		if !ok {
			return fault("write a number from 1 to 65535, host:inside, or inside: for a free port of the host")
		}
		p.Host, p.Guest = n, n
		return p, nil
	}
	first := rest
	if ip, port, more := cutLast(rest, ":"); more {
		address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(ip, "["), "]"))
		if err != nil {
			return fault("what is in front of the ports is no IP address")
		}
		p.IP, first = address.String(), port
	}
	n, ok := portNumber(first)
	if !ok {
		return fault("the first port must be a number from 1 to 65535")
	}
	if last == "" {
		p.Guest = n
		return p, nil
	}
	if p.Guest, ok = portNumber(last); !ok {
		return fault("the port inside must be a number from 1 to 65535")
	}
	p.Host = n
	return p, nil
}

func portNumber(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err == nil && n > 0
}

func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}
