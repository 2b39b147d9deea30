package docker

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestFreeSubnetsShareNoAddressWithWhatIsTaken(t *testing.T) {
	first := func(n int, taken ...string) string {
		var words []string
		for subnet := range freeSubnets(prefixes(taken)) {
			if words = append(words, subnet.String()); len(words) == n {
				break
			}
		}
		return strings.Join(words, " ")
	}
	for _, c := range []struct {
		taken string
		n     int
		want  string
	}{
		{"", 3, "10.213.0.0/24 10.213.1.0/24 10.213.2.0/24"},
		{"10.213.0.0/24 10.213.2.0/24", 2, "10.213.1.0/24 10.213.3.0/24"},
		{"10.213.1.77/32", 2, "10.213.0.0/24 10.213.2.0/24"},          // a route to one host
		{"10.213.0.5/24", 1, "10.213.1.0/24"},                         // an interface's address
		{"10.213.0.0/20", 1, "10.213.16.0/24"},                        // wider than a subnet
		{"10.0.0.0/8", 2, "172.16.0.0/24 172.16.1.0/24"},              // a company's network
		{"10.0.0.0/8 172.16.0.0/12", 1, ""},                           // all of it
		{"172.17.0.0/16 192.168.0.0/20 fd00::/8", 1, "10.213.0.0/24"}, // somebody else's
	} {
		if got := first(c.n, strings.Fields(c.taken)...); got != c.want {
			t.Errorf("with %q taken: %q, want %q", c.taken, got, c.want)
		}
	}
	n := len(slices.Collect(freeSubnets(nil)))
	if n != 512 {
		t.Errorf("%d subnets", n)
	}
}

func TestParseRoutes(t *testing.T) {
	number := func(address string) string {
		a := netip.MustParseAddr(address).As4()
		return fmt.Sprintf("%08X", binary.NativeEndian.Uint32(a[:]))
	}
	row := func(destination, mask string) string {
		return "eth0\t" + number(destination) + "\t00000000\t0001\t0\t0\t0\t" + number(mask) + "\t0\t0\t0\n"
	}
	table := "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n" +
		row("0.0.0.0", "0.0.0.0") + row("0.0.0.0", "128.0.0.0") + row("128.0.0.0", "128.0.0.0") + // everything
		row("10.0.0.0", "255.0.0.0") + row("10.213.7.0", "255.255.255.0") + row("192.0.2.9", "255.255.255.255") +
		row("10.1.0.0", "255.0.255.0") + // no prefix
		"eth0\tzz\n" + "eth0\t0000\t0\t0\t0\t0\t0\tFF\t0\n"
	var got []string
	for _, p := range parseRoutes(table) {
		got = append(got, p.String())
	}
	if want := []string{"10.0.0.0/8", "10.213.7.0/24", "192.0.2.9/32"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
