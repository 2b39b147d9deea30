package cfg

import "testing"

func TestParsePort(t *testing.T) {
	for text, want := range map[string]Port{
		"3000":              {"", 3000, 3000, "tcp"},
		"3000/udp":          {"", 3000, 3000, "udp"},
		"8080:3000":         {"", 8080, 3000, "tcp"},
		"8080:3000/tcp":     {"", 8080, 3000, "tcp"},
		"8080:":             {"", 0, 8080, "tcp"},
		"8080:/udp":         {"", 0, 8080, "udp"},
		"0.0.0.0:8080:3000": {"0.0.0.0", 8080, 3000, "tcp"},
		"127.0.0.1:8080:":   {"127.0.0.1", 0, 8080, "tcp"},
		"[::1]:8080:3000":   {"::1", 8080, 3000, "tcp"},
		"65535":             {"", 65535, 65535, "tcp"},
	} {
		if got, err := ParsePort(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "65536", "-1", "x", ":", ":3000", "8080:x", "x:3000", "3000/", "3000/sctp", "3000/udp/udp",
		"localhost:8080:3000", "1.2.3:8080:3000", "a:b:c:d", " 3000", "3000-3005"} {
		if got, err := ParsePort(text); err == nil {
			t.Errorf("%q was taken as %+v", text, got)
		}
	}
}
