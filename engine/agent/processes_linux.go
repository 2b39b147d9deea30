package agent

import (
	"bytes"
	"os"
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
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return false
		}
		// The name in parentheses may hold anything, so fields count from its end.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			return false
		}
		if pid, err = strconv.Atoi(string(fields[1])); err != nil {
			return false
		}
	}
	return false
}
