package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"cellmux/cell/proc"
	"cellmux/engine/docker"
)

// docker is the engine of containers; nothing is started. log may be nil.
func (w wiring) docker(log *slog.Logger) *docker.Docker {
	var egress []string
	if self, err := os.Executable(); err == nil {
		egress = docker.EgressProgram(self, runtime.GOOS, runtime.GOARCH)
	}
	approvals := w.approvals()
	return docker.New(docker.Options{
		Runner: proc.New(), Environ: w.environ, StateDir: filepath.Join(w.paths.State, "docker"),
		HostUser: w.user, Home: w.home, UID: os.Getuid(), GID: os.Getgid(), Egress: egress,
		Approved: func(path string, content []byte) bool {
			return approvals.Approved(path, docker.ContentHash(content))
		},
		Log: log,
	})
}
