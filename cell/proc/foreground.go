package proc

import (
	"io"
	"os"
	"os/exec"
)

// ForegroundProcess is a program that gets the terminal, such as an attached
// tmux client. It has the shape of tea.ExecCommand.
type ForegroundProcess struct {
	cmd            Cmd
	stdin          io.Reader
	stdout, stderr io.Writer
}

// Foreground prepares c to run in the session and foreground process group of
// cellmux, since a terminal is lent to those alone; nothing starts before Run.
// The user ends it: Timeout, Grace, MaxOutput, Marker and LeavesDaemon do not
// apply. It gets cellmux's own terminal, whatever Bubble Tea puts in front of
// it: a reader or writer that is no *os.File is passed over.
func Foreground(c Cmd) *ForegroundProcess {
	f := &ForegroundProcess{cmd: c, stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	if c.Stdin != nil {
		f.stdin = c.Stdin
	}
	return f
}

// SetStdin sets the terminal to read from, unless the Cmd named an input.
func (f *ForegroundProcess) SetStdin(r io.Reader) {
	if file, ok := r.(*os.File); ok && f.cmd.Stdin == nil {
		f.stdin = file
	}
}

// SetStdout sets where output goes; io.Discard throws it away.
func (f *ForegroundProcess) SetStdout(w io.Writer) {
	if file, ok := w.(*os.File); ok {
		f.stdout = file
	}
	if w == io.Discard {
		f.stdout = nil // os/exec opens the null device
	}
}

// SetStderr sets where errors go.
func (f *ForegroundProcess) SetStderr(w io.Writer) {
	if file, ok := w.(*os.File); ok {
		f.stderr = file
	}
}

// Run blocks until the program has ended and is reaped. An exit code other than
// zero is an *exec.ExitError.
func (f *ForegroundProcess) Run() error {
	path, err := resolve(f.cmd)
	if err != nil {
		return err
	}
	env := f.cmd.Env
	if env == nil {
		env = []string{} // nil would mean cellmux's own to os/exec
	}
	cmd := exec.Cmd{
		Path: path, Args: f.cmd.Argv, Dir: f.cmd.Dir, Env: env,
		Stdin: f.stdin, Stdout: f.stdout, Stderr: f.stderr,
	}
	if err := cmd.Run(); err != nil {
		return startError(f.cmd, err)
	}
	return nil
}
