package state

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// filled returns the path of a closed database with n cells in it.
func filled(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cellmux.db")
	db, _, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		must[Cell](t)(db.CreateCell(t.Context(), Cell{ProjectDir: "/src/api", Title: strings.Repeat("title ", 20)}))
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDamagedDatabaseIsSetAsideUnchanged(t *testing.T) {
	damages := map[string]func([]byte) []byte{
		"text in its place":       func([]byte) []byte { return []byte("not a database at all\n") },
		"first page overwritten":  func(b []byte) []byte { copy(b, bytes.Repeat([]byte{0xff}, 4096)); return b },
		"magic bit flipped":       func(b []byte) []byte { b[3] ^= 4; return b },
		"torn in a page":          func(b []byte) []byte { return b[:len(b)-1000] },
		"cut at a page":           func(b []byte) []byte { return b[:len(b)-2*4096] },
		"cut within the header":   func(b []byte) []byte { return b[:50] },
		"schema page overwritten": func(b []byte) []byte { copy(b[100:], bytes.Repeat([]byte{0xa5}, 3000)); return b },
		"middle overwritten": func(b []byte) []byte {
			copy(b[len(b)/2/4096*4096:], bytes.Repeat([]byte{0x5a}, 8192))
			return b
		},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			path := filled(t, 40)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			damaged := damage(bytes.Clone(whole))
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			db, report, err := Open(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if report.SetAside == "" || report.Reason == "" || !report.Created {
				t.Fatalf("report %+v", report)
			}
			if kept, err := os.ReadFile(report.SetAside); err != nil || !bytes.Equal(kept, damaged) {
				t.Fatalf("what was set aside is not what was there (%v)", err)
			}
			if cells := must[[]Cell](t)(db.Cells(t.Context())); len(cells) != 0 {
				t.Fatalf("the new database has %d cells", len(cells))
			}
			must[Cell](t)(db.CreateCell(t.Context(), Cell{ProjectDir: "/src/api"}))
		})
	}
}

// A flipped bit either shows at the start, or is in text that nothing can
// check; it is never an error that stops the start, and never a lost file.
func TestFlippedBitsNeverStopTheStart(t *testing.T) {
	path := filled(t, 40)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		flipped := bytes.Clone(whole)
		at := random.IntN(len(flipped))
		flipped[at] ^= 1 << random.IntN(8)
		path := filepath.Join(t.TempDir(), "cellmux.db")
		if err := os.WriteFile(path, flipped, 0o600); err != nil {
			t.Fatal(err)
		}
		db, report, err := Open(t.Context(), path)
		if err != nil {
			if errors.Is(err, ErrNewer) || errors.Is(err, ErrDamaged) {
				continue // the version row itself was hit
			}
			t.Fatalf("bit at %d: %v", at, err)
		}
		if report.SetAside != "" {
			if kept, err := os.ReadFile(report.SetAside); err != nil || !bytes.Equal(kept, flipped) {
				t.Fatalf("bit at %d: the file was changed (%v)", at, err)
			}
		}
		db.Close()
	}
}

func TestTwoDamagedFilesKeepTwoNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cellmux.db")
	now := clock()()
	for _, content := range []string{"first", "second"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+"-wal", []byte(content+" log"), 0o600); err != nil {
			t.Fatal(err)
		}
		aside, err := setAside(path, now)
		if err != nil {
			t.Fatal(err)
		}
		for side, want := range map[string]string{"": content, "-wal": content + " log"} {
			if got, err := os.ReadFile(aside + side); err != nil || string(got) != want {
				t.Fatalf("%s%s holds %q (%v)", aside, side, got, err)
			}
		}
	}
}

func TestTornLogLosesNothingThatWasThere(t *testing.T) {
	path := filled(t, 3)
	db, _, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	must[Cell](t)(db.CreateCell(t.Context(), Cell{ProjectDir: "/src/late"}))
	// What a crash leaves: the files as they are while the database is open.
	crashed := filepath.Join(t.TempDir(), "cellmux.db")
	for _, side := range []string{"", "-wal"} {
		content, err := os.ReadFile(path + side)
		if err != nil {
			t.Fatal(err)
		}
		if side == "-wal" {
			content = content[:len(content)-100]
		}
		if err := os.WriteFile(crashed+side, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	again, report, err := Open(t.Context(), crashed)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if report.SetAside != "" {
		t.Fatalf("report %+v", report)
	}
	if cells := must[[]Cell](t)(again.Cells(t.Context())); len(cells) != 3 {
		t.Fatalf("%d cells, want the 3 that were there before the torn write", len(cells))
	}
}

func TestFilesAreForTheirOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "cellmux.db")
	db, _, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	must[Cell](t)(db.CreateCell(t.Context(), Cell{ProjectDir: "/src/api"}))
	for _, side := range []string{"", "-wal", "-shm", ".lock"} {
		info, err := os.Stat(path + side)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path+side, info.Mode().Perm())
		}
	}
}

// Other processes make their tables while this one looks for damage: a schema
// that changes meanwhile is neither an error nor damage.
func TestSchemaThatChangesMeanwhileIsNoDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cellmux.db")
	db, _, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.SQL().Exec(`CREATE VIRTUAL TABLE words USING fts5(text); INSERT INTO words VALUES ('a b c')`); err != nil {
		t.Fatal(err)
	}
	looked := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		for {
			select {
			case <-looked:
				ended <- nil
				return
			default:
			}
			if _, err := db.SQL().Exec(`CREATE TABLE passing (a); DROP TABLE passing`); err != nil {
				ended <- err
				return
			}
		}
	}()
	for range 300 {
		if reason, whole, err := examine(t.Context(), path, false); reason != "" || !whole || err != nil {
			t.Errorf("%q, %v, %v", reason, whole, err)
			break
		}
	}
	close(looked)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}
