package proc

import (
	"os"
	"os/exec"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// processes takes a snapshot of the process table. Windows has neither groups
// nor sessions in this sense: descent finds the members, as far as parents live.
func processes() ([]entry, error) {
	snapshot, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = windows.CloseHandle(snapshot) }()
	var table []entry
	row := windows.ProcessEntry32{Size: uint32(unsafe.Sizeof(windows.ProcessEntry32{}))}
	for err := windows.Process32First(snapshot, &row); err == nil; err = windows.Process32Next(snapshot, &row) {
		e := entry{parent: int(row.ParentProcessID)}
		e.PID = int(row.ProcessID)
		e.Name = windows.UTF16ToString(row.ExeFile[:])
		if e.Start, err = StartTime(e.PID); err == nil {
			table = append(table, e)
		}
	}
	// A parent's PID may have been given to a younger process, which is nobody's parent.
	started := make(map[int]uint64, len(table))
	for _, e := range table {
		started[e.PID] = e.Start
	}
	for i := range table {
		if started[table[i].parent] > table[i].Start {
			table[i].parent = 0
		}
	}
	return table, nil
}

// StartTime returns when a process started, in the system's own unit, to tell
// it from a later one with the same PID.
func StartTime(pid int) (uint64, error) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return 0, err
	}
	defer func() { _ = windows.CloseHandle(h) }()
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &created, &exited, &kernel, &user); err != nil {
		return 0, err
	}
	if exited.LowDateTime != 0 || exited.HighDateTime != 0 {
		return 0, os.ErrProcessDone
	}
	return uint64(created.HighDateTime)<<32 | uint64(created.LowDateTime), nil
}

// environ is empty: another process's environment cannot be read without
// debugging rights.
func environ(int) [][]byte { return nil }

// Ended says whether a process has certainly ended that had this PID and had
// started by the time of a StartTime; here that is never certain.
func Ended(int, uint64) bool { return false }

const (
	terminate = syscall.SIGTERM
	kill      = syscall.SIGKILL
)

// signal ends the process at once: there is no signal that a program without a
// console could act on.
func signal(m Member, _ syscall.Signal) {
	h, err := windows.OpenProcess(windows.PROCESS_TERMINATE|windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(m.PID))
	if err != nil {
		return
	}
	defer func() { _ = windows.CloseHandle(h) }()
	if start, err := StartTime(m.PID); err == nil && start == m.Start {
		_ = windows.TerminateProcess(h, 1)
	}
}

// waitUnreaped blocks until the child has exited; an open handle keeps its PID.
func waitUnreaped(cmd *exec.Cmd) { _ = cmd.Wait() }

func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

func exitStatus(state *os.ProcessState) (code int, signaled bool) {
	if state == nil {
		return -1, false
	}
	return state.ExitCode(), false
}
