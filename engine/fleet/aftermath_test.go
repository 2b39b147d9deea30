package fleet

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestScreenThatEndedWithoutGoodbyeIsToldOnceAndTheOthersAreNot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "screens")
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)
	killed, told, err := Appear(dir, 100, now)
	if err != nil || len(told) != 0 {
		t.Fatalf("%q, %v", told, err)
	}
	running, told, err := Appear(dir, 200, now)
	if err != nil || len(told) != 0 {
		t.Fatalf("a screen that runs was called ended: %q, %v", told, err)
	}
	killed.held.Release() // as the kernel does for a process that is gone

	third, told, err := Appear(dir, 300, now)
	if err != nil || len(told) != 1 || !strings.Contains(told[0], "process 100") || !strings.Contains(told[0], "12:00") {
		t.Errorf("%q, %v", told, err)
	}
	fourth, told, err := Appear(dir, 400, now)
	if err != nil || len(told) != 0 {
		t.Errorf("told twice: %q, %v", told, err)
	}
	for _, p := range []*Presence{running, third, fourth} {
		if err := p.Leave(); err != nil {
			t.Error(err)
		}
	}
	if _, told, err := Appear(dir, 500, now); err != nil || len(told) != 0 {
		t.Errorf("screens that said goodbye were told: %q, %v", told, err)
	}
	if files, _ := os.ReadDir(dir); len(files) != 1 {
		t.Errorf("%d marks, want one", len(files))
	}
}

// failingVariable makes the test's own program a screen that fails.
const failingVariable = "CELLMUX_FLEET_FAILING"

func TestAPanicInAnyGoroutineIsToldByTheNextStartWithItsReport(t *testing.T) {
	if dir := os.Getenv(failingVariable); dir != "" {
		presence, _, err := Appear(dir, os.Getpid(), time.Now())
		if err == nil {
			err = presence.Report()
		}
		if err != nil {
			t.Fatal(err)
		}
		go func() { panic("a fault that nobody waits for\x1b[2J") }()
		select {}
	}
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), failingVariable+"="+dir)
	if out, err := child.CombinedOutput(); err == nil {
		t.Fatalf("the child did not fail: %s", out)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	presence, told, err := Appear(dir, 100, now)
	if err != nil || len(told) != 1 || !strings.Contains(told[0], "failed (panic: a fault that nobody waits for") || strings.Contains(told[0], "\x1b") {
		t.Fatalf("%q, %v", told, err)
	}
	defer presence.Leave()
	reports, _ := filepath.Glob(filepath.Join(dir, "failed-20261130T120000Z-*.txt"))
	if len(reports) != 1 || !strings.Contains(told[0], reports[0]) {
		t.Fatalf("%q names none of %q", told, reports)
	}
	if trace, err := os.ReadFile(reports[0]); err != nil || !strings.Contains(string(trace), "aftermath_test.go") {
		t.Errorf("the report has no trace: %q, %v", trace, err)
	}
}

func TestReportsOfFailuresAreFewAndAFailureThatWasSurvivedIsToldToo(t *testing.T) {
	dir := t.TempDir()
	for i := range keptReports + 3 {
		now := time.Date(2026, 11, 30, 12, i, 0, 0, time.UTC)
		p, told, err := Appear(dir, 100+i, now)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 && (len(told) != 1 || !strings.Contains(told[0], "failed (a fault; the report is ")) {
			t.Fatalf("%q", told)
		}
		if err := p.Report(); err != nil {
			t.Fatal(err)
		}
		if err := p.Failed(errors.New("a fault")); err != nil {
			t.Fatal(err)
		}
	}
	last, _, err := Appear(dir, 1, time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(last.Report(), last.Leave()); err != nil {
		t.Fatal(err)
	}
	files, _ := os.ReadDir(dir)
	if len(files) != keptReports {
		t.Errorf("%v, want the newest %d reports alone", files, keptReports)
	}
}
