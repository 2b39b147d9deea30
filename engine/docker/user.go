package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// introduceUser writes the user of a new container into its passwd and group
// files, so that programs inside find a name and a home for their uid. A user of
// the image with the same uid keeps the second place: the first one counts.
func (d *Docker) introduceUser(ctx context.Context, name string) error {
	f, err := d.known(ctx)
	if err != nil {
		return err
	}
	if f.podman && f.rootless {
		return nil // keep-id does it
	}
	uid, gid := strconv.Itoa(d.o.UID), strconv.Itoa(d.o.GID)
	if f.rootless {
		uid, gid = "0", "0"
	}
	passwd, err := d.readFile(ctx, name, "/etc/passwd")
	if err != nil {
		return err
	}
	group, err := d.readFile(ctx, name, "/etc/group")
	if err != nil {
		return err
	}
	user := d.o.HostUser
	passwd = withEntry(passwd, user, user+":x:"+uid+":"+gid+"::"+d.home()+":"+rootShell(passwd))
	if _, taken := entryOf(group, 2, gid); !taken {
		group = withEntry(group, user, user+":x:"+gid+":")
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, file := range []struct{ name, content string }{{"passwd", passwd}, {"group", group}} {
		header := &tar.Header{Name: file.name, Mode: 0o644, Size: int64(len(file.content)), ModTime: time.Unix(0, 0)}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := io.WriteString(w, file.content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	result, err := d.runWith(ctx, slow, &archive, "cp", "-", name+":/etc")
	return d.judge("introduce the user to the container "+name, result, err)
}

// readFile reads a small file of a container; "" where it has none.
func (d *Docker) readFile(ctx context.Context, name, file string) (string, error) {
	args := []string{"cp", "--follow-link", name + ":" + file, "-"}
	if f, err := d.known(ctx); err != nil {
		return "", err
	} else if f.podman {
		args = []string{"cp", name + ":" + file, "-"} // it follows, and has no such flag
	}
	result, err := d.run(ctx, slow, args...)
	if err == nil && result.ExitCode != 0 && strings.Contains(strings.ToLower(string(result.Stderr)), "no such file") ||
		strings.Contains(string(result.Stderr), "Could not find the file") {
		return "", nil
	}
	if err = d.judge("read "+file+" of the container "+name, result, err); err != nil {
		return "", err
	}
	r := tar.NewReader(bytes.NewReader(result.Stdout))
	for {
		header, err := r.Next()
		if err != nil {
			return "", fmt.Errorf("read %s of the container %s: %w", file, name, err)
		}
		if header.Typeflag == tar.TypeReg && header.Name == filepath.Base(file) {
			content, err := io.ReadAll(r)
			return string(content), err
		}
	}
}

// withEntry puts an entry at the front of a passwd or group file, in place of
// the one that has the same name.
func withEntry(file, name, entry string) string {
	var b strings.Builder
	b.WriteString(entry + "\n")
	for line := range strings.Lines(file) {
		if !strings.HasPrefix(line, name+":") {
			b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return b.String()
}

// entryOf finds the line with a value in one of its fields.
func entryOf(file string, field int, value string) (line string, found bool) {
	for line := range strings.Lines(file) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), ":")
		if len(fields) > field && fields[field] == value {
			return line, true
		}
	}
	return "", false
}

// rootShell is the shell that the image gives to root: the one that it has.
func rootShell(passwd string) string {
	line, _ := entryOf(passwd, 2, "0")
	fields := strings.Split(strings.TrimSpace(line), ":")
	if shell := fields[len(fields)-1]; strings.HasPrefix(shell, "/") {
		return shell
	}
	return "/bin/sh"
}
