package docker

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The proxy as guests see it.
const (
	proxyName = "cellmux-proxy"
	proxyPort = "3128"
)

// ensureProxy makes the egress proxy of an allowlist run. It does not come back
// with the daemon, as cells do not: the next one that comes up makes it run.
func (d *Docker) ensureProxy(ctx context.Context, n network) error {
	b, found, err := d.inspect(ctx, n.proxy)
	if err != nil {
		return err
	}
	if found && b.owner != d.owner {
		return fmt.Errorf("a container %s exists that cellmux did not make: rename or remove it", n.proxy)
	}
	if found && b.status == "running" {
		return nil
	}
	if found {
		// It keeps nothing; and somebody may have ended the cellmux that made it
		// before it was connected, or removed a network that it remembers.
		if err := d.remove(ctx, n.proxy); err != nil {
			return err
		}
	}
	outer := "cellmux-outer-" + d.owner[:6]
	if err := d.ensureNetwork(ctx, outer, "--opt", "com.docker.network.bridge.enable_icc=false"); err != nil {
		return err
	}
	if err := d.ensureEgressImage(ctx, n.image); err != nil {
		return err
	}
	args := []string{
		"create", "--pull", "never", "--name", n.proxy, "--hostname", proxyName, "--network", outer,
		"--label", labelOwner + "=" + d.owner, "--label", labelEgress + "=" + n.describe(),
		"--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--memory", "128m", "--pids-limit", "128", "--restart", "on-failure", n.image,
	}
	args = append(args, d.o.Egress[1:]...)
	args = append(args, "--listen", ":"+proxyPort)
	for _, host := range n.hosts {
		args = append(args, "--allow", host)
	}
	if err := d.do(ctx, "create the egress proxy", args...); err != nil {
		return err
	}
	if err := d.do(ctx, "connect the egress proxy", "network", "connect", "--alias", proxyName, n.name, n.proxy); err != nil {
		return errors.Join(err, d.remove(context.WithoutCancel(ctx), n.proxy))
	}
	return d.do(ctx, "start the egress proxy", "start", n.proxy)
}

// egressImage names the proxy's image by the content of its program.
func (d *Docker) egressImage() (string, error) {
	if len(d.o.Egress) == 0 {
		return "", errors.New(`[cell] network = "allowlist" needs the egress proxy, which this cellmux was built without; choose "none" or "open"`)
	}
	file, err := os.Open(d.o.Egress[0])
	if err != nil {
		return "", fmt.Errorf("find the egress proxy: %w", err)
	}
	defer func() { _ = file.Close() }()
	if err := checkStatic(file); err != nil {
		return "", fmt.Errorf("the egress proxy %s: %w", d.o.Egress[0], err)
	}
	digest := sha256.New()
	if _, err := io.Copy(digest, file); err != nil {
		return "", fmt.Errorf("read the egress proxy: %w", err)
	}
	return "cellmux/egress:" + hex.EncodeToString(digest.Sum(nil)[:6]), nil
}

// checkStatic refuses a program that an image without any other file cannot run.
func checkStatic(file *os.File) error {
	program, err := elf.NewFile(file)
	if err != nil {
		return errors.New("it is no Linux program, and guests run Linux")
	}
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			return errors.New("it is not linked statically; build it with CGO_ENABLED=0")
		}
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}

// ensureEgressImage makes the proxy's image: from scratch, one file.
func (d *Docker) ensureEgressImage(ctx context.Context, image string) error {
	if found, err := d.hasImage(ctx, image); found || err != nil {
		return err
	}
	file, err := os.Open(d.o.Egress[0])
	if err != nil {
		return fmt.Errorf("find the egress proxy: %w", err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("find the egress proxy: %w", err)
	}
	archive, feed := io.Pipe()
	go func() { feed.CloseWithError(writeProgram(feed, file, info.Size())) }()
	defer func() { _ = archive.Close() }() // ends the writer where docker did not read it all
	result, err := d.runWith(ctx, slow, archive, "import",
		"--change", `ENTRYPOINT ["/egress"]`, "--change", "USER 65534:65534",
		"--change", "LABEL "+labelOwner+"="+d.owner+" "+labelEgress+"=image", "-", image)
	return d.judge("make the image of the egress proxy", result, err)
}

func writeProgram(to io.Writer, program io.Reader, size int64) error {
	w := tar.NewWriter(to)
	if err := w.WriteHeader(&tar.Header{Name: "egress", Mode: 0o755, Size: size}); err != nil {
		return err
	}
	if _, err := io.CopyN(w, program, size); err != nil {
		return err
	}
	return w.Close()
}

// EgressProgram finds the argv of the egress proxy: cellmux itself on Linux, and
// a cellmux-linux-<arch> beside it elsewhere. nil where there is none.
func EgressProgram(self, goos, goarch string) []string {
	if goos == "linux" {
		return []string{self, EgressArgument}
	}
	other := filepath.Join(filepath.Dir(self), "cellmux-linux-"+goarch)
	if _, err := os.Stat(other); err != nil {
		return nil
	}
	return []string{other, EgressArgument}
}

// EgressArgument is the hidden command of cellmux that serves the egress proxy.
const EgressArgument = "__egress"
