package agent

import (
	"bytes"
	"os"
	"path"
	"slices"
	"strconv"
)

// below says whether a process is another one or descends from it.
func below(pid, ancestor int) bool {
	if ancestor <= 0 {
		return false
	}
	for range 16 { // launchers nest two or three deep
		if pid == ancestor {
			return true
		}
		if pid <= 1 {
			return false
		}
		var ok bool
		if pid, ok = statField(pid, 1); !ok {
			return false
		}
	}
	return false
}

// statField is a number of /proc/PID/stat, counted from the one after the name:
// 1 is the parent, 4 the terminal (proc(5) counts from 1 and the PID).
func statField(pid, n int) (int, bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// The name in parentheses may hold anything, so fields count from its end.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= n {
		return 0, false
	}
	value, err := strconv.Atoi(string(fields[n]))
	return value, err == nil
}

// hasTerminal says whether a process has a controlling terminal. One whose
// terminal was closed has none.
func hasTerminal(pid int) bool {
	terminal, ok := statField(pid, 4)
	return ok && terminal != 0
}

// livesIn says whether a process was started with home as its HOME. The
// environment of another user's process cannot be read: it is not ours.
func livesIn(pid int, home string) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	return slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(pair []byte) bool { return string(pair) == "HOME="+home })
}

// running lists the processes of the given programs of which an argument is
// exactly arg. A script's interpreter comes before its program.
func running(programs []string, arg string) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		command, err := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
		if err != nil || !bytes.Contains(command, []byte(arg)) {
			continue
		}
		argv := bytes.Split(command, []byte{0})
		named := slices.ContainsFunc(argv[:min(len(argv), 3)], func(word []byte) bool { return slices.Contains(programs, path.Base(string(word))) })
		if named && slices.ContainsFunc(argv, func(word []byte) bool { return string(word) == arg }) {
			found = append(found, pid)
		}
	}
	return found
}
