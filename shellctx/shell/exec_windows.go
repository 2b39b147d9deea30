package shell

import (
	"os"
	"syscall"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"

	"cellmux/cell/proc"
)

// ownSession keeps a ctrl-c of the console from the program.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// interruptGroup has no counterpart on Windows: ending starts with terminating.
func interruptGroup(int) {}

func signalOf(*os.ProcessState) int { return 0 }
func isNoExec(error) bool           { return false }
func isTextBusy(error) bool         { return false }

func find(dir string, env expand.Environ, name string) (path string, code uint8, reason string) {
	path, err := interp.LookPathDir(dir, env, name)
	if err != nil {
		return "", codeNotFound, "command not found"
	}
	return path, 0, ""
}

func signalGroup(pid, _ int) { _, _ = proc.EndTree(proc.Tree{PID: pid}, 0) }

// groupLives looks at the table in any case.
func groupLives(int) bool { return true }

func noReader(*os.File) bool { return false }

func duplicate(f *os.File) (*os.File, error) { return os.Open(f.Name()) }

func releaseFIFO(string) {}

const (
	sigKill = 9
	sigTerm = 15
	sigCont = 18
	sigStop = 19
)

// signals are those that a Windows shell emulation can name; each ends.
var signals = map[string]int{"HUP": 1, "INT": 2, "QUIT": 3, "KILL": 9, "PIPE": 13, "TERM": 15}

func signalNumber(name string) int { return signals[name] }

func signalName(n int) string {
	for name, number := range signals {
		if number == n {
			return name
		}
	}
	return ""
}

func killPID(pid, signal int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	if signal == 0 {
		return nil
	}
	return p.Kill()
}
