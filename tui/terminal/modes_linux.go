package terminal

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// controls is how many control characters stty -g writes on Linux: NCCS of glibc
// and musl, of which the kernel has the first (termios.h).
const controls = 32

// modesOf are a terminal's modes as `stty -g` prints them, "" when they cannot
// be read: a process less to wait for.
func modesOf(path string) string {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer file.Close()
	t, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	if err != nil || len(t.Cc) > controls {
		return ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%x:%x:%x:%x", t.Iflag, t.Oflag, t.Cflag, t.Lflag)
	var all [controls]byte
	copy(all[:], t.Cc[:])
	for _, c := range all {
		fmt.Fprintf(&text, ":%x", c)
	}
	return text.String()
}
