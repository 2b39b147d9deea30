package shell

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"cellmux/cell/proc"
)

// forkedSince tells whether anybody has made a process or thread since the first
// of these was started, apart from them: when nobody has, nothing can be left.
// It spares a look at every process for a command that starts one program.
func forkedSince(pids []int) bool {
	last := lastPID()
	return last < pids[0] || last-pids[0]+1 != len(pids)
}

// lastPID is the PID given out last in this namespace (proc_loadavg(5)); 0 when
// it cannot be read.
func lastPID() int {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.Atoi(string(fields[len(fields)-1]))
	return n
}

// marked lists the processes that carry a marker. PIDs are given out in order,
// so only those after first are looked at, unless the numbers have wrapped.
func marked(marker string, first int) []proc.Member {
	last := lastPID()
	if last < first {
		members, err := proc.Members(proc.Tree{Marker: marker})
		if err != nil {
			return nil
		}
		return members
	}
	var members []proc.Member
	want := []byte(proc.MarkerVariable + "=" + marker + "\x00")
	// What is born while the others are looked at is looked at too: its parent
	// may be gone by the time that it is its turn.
	for range 10 {
		for _, pid := range pidsBetween(first, last) {
			if !carries(pid, want) {
				continue
			}
			start, err := proc.StartTime(pid)
			if err != nil {
				continue
			}
			name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
			members = append(members, proc.Member{PID: pid, Start: start, Name: string(bytes.TrimSpace(name))})
		}
		first, last = last+1, lastPID()
		if last < first {
			break
		}
	}
	return members
}

// carries looks for a marker in a process's environment. In the middle of its
// exec a process has none for a moment, which is worth waiting for.
func carries(pid int, want []byte) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	again := false
	for range 100 {
		env, err := os.ReadFile(dir + "/environ")
		if err != nil {
			return false
		}
		if len(env) > 0 {
			return bytes.Contains(env, want) && !gone(dir)
		}
		if inExec(dir) {
			time.Sleep(time.Millisecond)
			continue
		}
		// What was opened may have been the memory of before an exec that is over
		// by now: only a process that is empty twice has no environment.
		if again {
			return false
		}
		again = true
	}
	return false
}

// fields returns those of /proc/PID/stat that follow the name: the state is the
// first of them (proc_pid_stat(5)).
func fields(dir string) [][]byte {
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return nil
	}
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
}

func gone(dir string) bool {
	f := fields(dir)
	return len(f) == 0 || f[0][0] == 'Z' || f[0][0] == 'X'
}

// inExec tells whether a process has no environment yet, rather than an empty
// one: env_start is 0. A kernel thread has none for good, and its parent is 2.
func inExec(dir string) bool {
	f := fields(dir)
	const parent, envStart = 1, 47 // fields 4 and 50
	return len(f) > envStart && f[0][0] != 'Z' && f[0][0] != 'X' &&
		string(f[envStart]) == "0" && string(f[parent]) != "2" && string(f[parent]) != "0"
}

func pidsBetween(first, last int) []int {
	var pids []int
	if last-first < 64 {
		for pid := first; pid <= last; pid++ {
			pids = append(pids, pid)
		}
		return pids
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && pid >= first && pid <= last {
			pids = append(pids, pid)
		}
	}
	return pids
}
