package shell

import "testing"

func TestBriefLinesEndByThemselves(t *testing.T) {
	for line, want := range map[string]bool{
		"true": true, "  echo hi there": true, "cd src": true, "export A=b": true, "exit 3": true, "printf '%s' x": true,
		"": false, "sleep 9": false, "echo $(sleep 9)": false, "echo `sleep 9`": false, "true; sleep 9": false,
		"echo x | cat": false, "echo x >fifo": false, "true\nsleep 9": false, "true && sleep 9": false, "A=b true": false,
		"read x": false, "wait": false, "eval sleep 9": false, "exec sleep 9": false, "echo *": false, "command sleep 9": false,
		"echo ${A}": false, "e\\cho x": false, "cd ~user": false, "source f": false,
	} {
		if Brief(line) != want {
			t.Errorf("%q: %v", line, !want)
		}
	}
}
