package docker

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"os"
	"strings"
)

// ownRanges is where networks get their subnets once docker has no more of its
// own: a piece of RFC 1918's 10.0.0.0/8, then the one of 172.16.0.0/12 that
// docker's default pools leave out.
var ownRanges = [...]netip.Prefix{
	netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 213, 0, 0}), 16),
	netip.PrefixFrom(netip.AddrFrom4([4]byte{172, 16, 0, 0}), 16),
}

// subnetTries bounds how many subnets docker is offered that look free from
// here: one may belong to something that only docker knows.
const subnetTries = 16

// createOnFreeSubnet makes a network that docker has no subnet for. noPool is
// what docker said, and the answer where there is none to be found.
func (d *Docker) createOnFreeSubnet(ctx context.Context, name string, noPool error, options []string) error {
	taken, err := d.takenSubnets(ctx)
	if err != nil {
		return errors.Join(noPool, err)
	}
	tries := 0
	for subnet := range freeSubnets(taken) {
		err := d.createNetwork(ctx, name, append([]string{"--subnet", subnet.String()}, options...)...)
		if !errors.Is(err, errPoolTaken) {
			return err
		}
		if tries++; tries == subnetTries {
			break
		}
	}
	return noPool
}

// freeSubnets are the /24s of ownRanges that share no address with what is
// taken, in order.
func freeSubnets(taken []netip.Prefix) iter.Seq[netip.Prefix] {
	return func(yield func(netip.Prefix) bool) {
		for _, all := range ownRanges {
			for third := range 256 {
				address := all.Addr().As4()
				address[2] = byte(third)
				subnet := netip.PrefixFrom(netip.AddrFrom4(address), 24)
				if !overlaps(subnet, taken) && !yield(subnet) {
					return
				}
			}
		}
	}
}

func overlaps(subnet netip.Prefix, taken []netip.Prefix) bool {
	for _, t := range taken {
		if subnet.Overlaps(t) {
			return true
		}
	}
	return false
}

// takenSubnets are those of docker's networks and of this host.
func (d *Docker) takenSubnets(ctx context.Context) ([]netip.Prefix, error) {
	result, err := d.run(ctx, d.o.Deadline, "network", "ls", "--quiet", "--no-trunc")
	if err = d.judge("list docker's networks", result, err); err != nil {
		return nil, err
	}
	ids := strings.Fields(string(result.Stdout))
	args := append([]string{"network", "inspect", "--format", `{{range .IPAM.Config}}{{.Subnet}} {{end}}`}, ids...)
	// It tells of all that it finds, also where one has gone since; and docker
	// itself refuses what it has and did not tell.
	if result, err = d.run(ctx, d.o.Deadline, args...); err != nil {
		return nil, d.judge("look at docker's networks", result, err)
	}
	host, err := d.host()
	if err != nil {
		return nil, fmt.Errorf("look which addresses this machine has: %w", err)
	}
	return append(prefixes(strings.Fields(string(result.Stdout))), host...), nil
}

// hostSubnets are those of this host's interfaces and routes; outside Linux of
// its interfaces.
func hostSubnets() ([]netip.Prefix, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var taken []netip.Prefix
	for _, a := range addresses {
		taken = append(taken, prefixes([]string{a.String()})...)
	}
	routes, err := os.ReadFile("/proc/net/route")
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return append(taken, parseRoutes(string(routes))...), nil
}

// prefixes are those words that are one.
func prefixes(words []string) []netip.Prefix {
	var all []netip.Prefix
	for _, word := range words {
		if p, err := netip.ParsePrefix(word); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// parseRoutes reads Linux's /proc/net/route: a heading, then rows of fields, of
// which the second is the destination and the eighth its mask, both as eight hex
// digits in the machine's byte order. Routes that take everything (the default
// one, or the two halves by which a VPN stands before it) take no subnet from
// anybody.
func parseRoutes(table string) []netip.Prefix {
	const everything = 1 // bits of the widest prefix that is passed over
	var all []netip.Prefix
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		if len(fields) < 8 {
			continue
		}
		destination, err := hex.DecodeString(fields[1])
		mask, err2 := hex.DecodeString(fields[7])
		if err != nil || err2 != nil || len(destination) != 4 || len(mask) != 4 {
			continue // the heading
		}
		bits, _ := net.IPMask(native(mask)).Size()
		if bits > everything {
			all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte(native(destination))), bits).Masked())
		}
	}
	return all
}

// native turns a number in the machine's byte order into an address.
func native(number []byte) []byte {
	return binary.NativeEndian.AppendUint32(nil, binary.BigEndian.Uint32(number))
}
