package proc

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// processes reads /proc once. A process that ends meanwhile is left out.
func processes() ([]entry, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	_ = dir.Close()
	if err != nil {
		return nil, err
	}
	table := make([]entry, 0, len(names))
	buf := make([]byte, 4096)
	for _, name := range names {
		if name[0] < '1' || name[0] > '9' {
			continue
		}
		if e, ok := readStat(name, buf); ok {
			table = append(table, e)
		}
	}
	return table, nil
}

// readStat parses /proc/PID/stat (proc_pid_stat(5)). The name stands in
// parentheses and may hold parentheses and spaces itself: the last ')' ends it.
func readStat(pid string, buf []byte) (entry, bool) {
	f, err := os.Open("/proc/" + pid + "/stat")
	if err != nil {
		return entry{}, false
	}
	n, _ := f.Read(buf)
	_ = f.Close()
	line := buf[:n]
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return entry{}, false
	}
	fields := bytes.Fields(line[end+1:])
	if len(fields) < 20 { // state is field 3, starttime field 22
		return entry{}, false
	}
	var e entry
	if e.PID, err = strconv.Atoi(pid); err != nil {
		return entry{}, false
	}
	e.Name = string(line[open+1 : end])
	e.zombie = fields[0][0] == 'Z' || fields[0][0] == 'X'
	number := func(i int) int { v, _ := strconv.Atoi(string(fields[i])); return v }
	e.parent, e.group, e.session = number(1), number(2), number(3)
	e.Start, _ = strconv.ParseUint(string(fields[19]), 10, 64)
	return e, true
}

// StartTime returns when a process started, in the system's own unit, to tell
// it from a later one with the same PID.
func StartTime(pid int) (uint64, error) {
	e, ok := readStat(strconv.Itoa(pid), make([]byte, 4096))
	if !ok {
		return 0, os.ErrProcessDone
	}
	return e.Start, nil
}

// environ is the environment with which a process was started, KEY=VALUE; that
// of another user cannot be read, and is not ours.
func environ(pid int) [][]byte {
	path := "/proc/" + strconv.Itoa(pid) + "/environ"
	env, err := os.ReadFile(path)
	if err == nil && len(env) == 0 {
		// A process in the middle of its exec has no environment for a moment.
		env, err = os.ReadFile(path)
	}
	if err != nil {
		return nil
	}
	return bytes.Split(env, []byte{0})
}

// Ended says whether a process has certainly ended that had this PID and had
// started by the time of a StartTime. One that was not waited for has ended.
func Ended(pid int, by uint64) bool {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return true
	}
	e, ok := readStat(strconv.Itoa(pid), make([]byte, 4096))
	return ok && (e.zombie || e.Start > by)
}

const (
	terminate = unix.SIGTERM
	kill      = unix.SIGKILL
)

// signal hits exactly the process that m names: the handle is opened first, the
// start time compared next, so no stranger can take the PID between the two.
func signal(m Member, sig syscall.Signal) {
	fd, err := unix.PidfdOpen(m.PID, 0)
	switch {
	case err == nil:
		defer func() { _ = unix.Close(fd) }()
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
		fd = -1 // an old kernel, or a sandbox that forbids the call
	default:
		return
	}
	if start, err := StartTime(m.PID); err != nil || start != m.Start {
		return
	}
	send := func(s syscall.Signal) {
		if fd >= 0 {
			_ = unix.PidfdSendSignal(fd, s, nil, 0)
			return
		}
		_ = unix.Kill(m.PID, s)
	}
	send(sig)
	if sig == terminate {
		send(unix.SIGCONT) // a stopped process could not act on it
	}
}

// waitUnreaped blocks until the child has exited, and leaves it a zombie.
func waitUnreaped(cmd *exec.Cmd) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
