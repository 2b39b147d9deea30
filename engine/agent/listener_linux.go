package agent

import (
	"bufio"
	byteorder "encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listensBelow says whether the program that listens on a port of 127.0.0.1 is
// a process or descends from it. Nobody who listens is no.
func listensBelow(port, ancestor int) bool {
	socket, ok := listeningSocket(port)
	if !ok {
		return false
	}
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	for _, process := range processes {
		pid, err := strconv.Atoi(process.Name())
		if err != nil || !below(pid, ancestor) {
			continue
		}
		dir := filepath.Join("/proc", process.Name(), "fd")
		files, _ := os.ReadDir(dir) // a process that ends meanwhile has none
		for _, file := range files {
			if link, err := os.Readlink(filepath.Join(dir, file.Name())); err == nil && link == socket {
				return true
			}
		}
	}
	return false
}

// listeningSocket finds the socket that listens on a port of 127.0.0.1, as a
// link in /proc/PID/fd names it (proc_pid_net(5), proc_pid_fd(5)).
func listeningSocket(port int) (string, bool) {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return "", false
	}
	defer f.Close()
	local := fmt.Sprintf("%08X:%04X", byteorder.NativeEndian.Uint32([]byte{127, 0, 0, 1}), port)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		const listening = "0A"
		fields := strings.Fields(lines.Text())
		if len(fields) > 9 && fields[1] == local && fields[3] == listening {
			return "socket:[" + fields[9] + "]", true
		}
	}
	return "", false
}
