package input

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// parentOf reads proc_pid_stat(5). The command's name may hold anything, so
// the fields are counted from its closing parenthesis.
func parentOf(pid int) (int, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, fmt.Errorf("process %d has an unreadable stat", pid)
	}
	return strconv.Atoi(string(fields[1]))
}
