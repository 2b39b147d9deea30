package docker

import (
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"

	"cellmux/cell/proc"
)

// OwnerOf is the label of everything that d makes.
func OwnerOf(d *Docker) string { return d.owner }

// LogTo makes d log to w.
func LogTo(d *Docker, w io.Writer) { d.o.Log = slog.New(slog.NewTextHandler(w, nil)) }

// OnAnEmptyHost lets d believe that this host has no address and no route.
func OnAnEmptyHost(d *Docker) {
	d.host = func() ([]netip.Prefix, error) { return nil, nil }
}

// ProgramDir is where d finds its docker.
func ProgramDir(d *Docker) string {
	path, err := proc.LookPath("docker", d.o.Environ)
	if err != nil {
		panic(err)
	}
	return filepath.Dir(path)
}
