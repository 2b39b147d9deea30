package proc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// processes reads the kernel's process table. It has no session number; the
// group, the marker and descent find the members.
func processes() ([]entry, error) {
	rows, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil, err
	}
	table := make([]entry, 0, len(rows))
	for i := range rows {
		table = append(table, entryOf(&rows[i]))
	}
	return table, nil
}

func entryOf(k *unix.KinfoProc) entry {
	const zombie = 5 // SZOMB of sys/proc.h
	return entry{
		Member: Member{
			PID:   int(k.Proc.P_pid),
			Start: uint64(k.Proc.P_starttime.Sec)*1e6 + uint64(k.Proc.P_starttime.Usec),
			Name:  unix.ByteSliceToString(k.Proc.P_comm[:]),
		},
		parent: int(k.Eproc.Ppid),
		group:  int(k.Eproc.Pgid),
		zombie: k.Proc.P_stat == zombie,
	}
}

// StartTime returns when a process started, in the system's own unit, to tell
// it from a later one with the same PID.
func StartTime(pid int) (uint64, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0, err
	}
	if int(k.Proc.P_pid) != pid {
		return 0, os.ErrProcessDone
	}
	return entryOf(k).Start, nil
}

// environ is the environment with which a process was started, KEY=VALUE. The
// system gives a count, the program's path, the arguments, then the environment,
// each ended by a NUL (KERN_PROCARGS2).
func environ(pid int) [][]byte {
	raw, err := unix.SysctlRaw("kern.procargs2", pid)
	if err != nil || len(raw) < 4 {
		return nil
	}
	args := int(binary.NativeEndian.Uint32(raw))
	parts := bytes.Split(bytes.TrimLeft(raw[4+max(bytes.IndexByte(raw[4:], 0), 0):], "\x00"), []byte{0})
	return parts[min(max(args, 0), len(parts)):]
}

// Ended says whether a process has certainly ended that had this PID and had
// started by the time of a StartTime. One that was not waited for has ended.
func Ended(pid int, by uint64) bool {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return true
	}
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return false
	}
	e := entryOf(k)
	return e.zombie || e.Start > by
}

const (
	terminate = unix.SIGTERM
	kill      = unix.SIGKILL
)

func signal(m Member, sig syscall.Signal) {
	if start, err := StartTime(m.PID); err != nil || start != m.Start {
		return
	}
	_ = unix.Kill(m.PID, sig)
	if sig == terminate {
		_ = unix.Kill(m.PID, unix.SIGCONT) // a stopped process could not act on it
	}
}

// waitUnreaped blocks until the child has exited. macOS lets os.Process wait
// without reaping inside Wait alone, so the child is reaped here.
func waitUnreaped(cmd *exec.Cmd) { _ = cmd.Wait() }
