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
	return members
}

// carries looks for a marker in a process's environment. In the middle of its
// exec a process has none for a moment, as has a zombie for good.
func carries(pid int, want []byte) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	for range 5 {
		env, err := os.ReadFile(dir + "/environ")
		if err != nil {
			return false
		}
		if len(env) > 0 {
			return bytes.Contains(env, want) && !zombie(dir)
		}
		if zombie(dir) {
			return false
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func zombie(dir string) bool {
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return true
	}
	_, after, _ := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") "))
	return len(after) > 0 && (after[0] == 'Z' || after[0] == 'X')
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
