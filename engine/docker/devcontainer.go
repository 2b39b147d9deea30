package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/tailscale/hujson"

	"cellmux/engine"
)

// devcontainerFiles are where a project keeps its devcontainer.json, in the order
// in which the specification looks (containers.dev).
var devcontainerFiles = []string{".devcontainer/devcontainer.json", ".devcontainer.json"}

// maxProjectFile bounds what is read of a project's own file, in bytes.
const maxProjectFile = 1 << 20

// devcontainer reads the image or the plain build of a project's
// devcontainer.json, once the user has approved the file. A file that asks for
// more than cellmux does (features, compose) is left aside whole: half of it
// would be another container than its author's.
func (d *Docker) devcontainer(project string) (recipe, bool) {
	if d.o.Approved == nil {
		return recipe{}, false
	}
	root, err := os.OpenRoot(project) // a link in the project leads nowhere else
	if err != nil {
		return recipe{}, false
	}
	defer func() { _ = root.Close() }()
	for _, name := range devcontainerFiles {
		content, ok := readProjectFile(root, name)
		if !ok {
			continue
		}
		if !d.o.Approved(filepath.Join(project, name), content) {
			return recipe{}, false
		}
		return d.parseDevcontainer(root, project, name, content)
	}
	return recipe{}, false
}

func (d *Docker) parseDevcontainer(root *os.Root, project, name string, content []byte) (recipe, bool) {
	standard, err := hujson.Standardize(content)
	if err != nil {
		return recipe{}, false
	}
	var file struct {
		Image             string          `json:"image"`
		DockerComposeFile json.RawMessage `json:"dockerComposeFile"`
		Features          map[string]any  `json:"features"`
		Build             struct {
			Dockerfile string            `json:"dockerfile"`
			Context    string            `json:"context"`
			Args       map[string]string `json:"args"`
			Target     string            `json:"target"`
		} `json:"build"`
	}
	if json.Unmarshal(standard, &file) != nil || file.DockerComposeFile != nil || len(file.Features) > 0 {
		return recipe{}, false
	}
	if file.Build.Dockerfile == "" {
		if file.Image == "" || strings.HasPrefix(file.Image, "-") {
			return recipe{}, false
		}
		return recipe{reference: file.Image}, true
	}
	// Only a Dockerfile beside the file, built on its own directory: what else is
	// in the project is no part of an image.
	here := filepath.Dir(name)
	if file.Build.Target != "" || filepath.Base(file.Build.Dockerfile) != file.Build.Dockerfile ||
		file.Build.Context != "" && file.Build.Context != "." || here == "." {
		return recipe{}, false
	}
	text, ok := readProjectFile(root, filepath.Join(here, file.Build.Dockerfile))
	if !ok || !d.o.Approved(filepath.Join(project, here, file.Build.Dockerfile), text) {
		return recipe{}, false
	}
	r := recipe{dockerfile: string(text), arguments: file.Build.Args, context: filepath.Join(project, here), label: "devcontainer"}
	path := sha256.Sum256([]byte(r.context))
	r.reference = "cellmux/devcontainer:" + hex.EncodeToString(path[:4]) + "-" + r.digest()
	return r, true
}

// ContentHash is the hash by which a file's content is approved.
func ContentHash(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}

// ImageFiles implements engine.Images: the project's devcontainer.json and its
// Dockerfile.
func (*Docker) ImageFiles(c engine.Cell) map[string]string {
	if c.Config.Cell.Image != "" {
		return nil // it stands over the file
	}
	found := make(map[string]string)
	all := New(Options{Approved: func(path string, content []byte) bool {
		found[path] = ContentHash(content)
		return true
	}})
	if _, usable := all.devcontainer(c.ProjectDir); !usable {
		return nil
	}
	return found
}

func readProjectFile(root *os.Root, name string) ([]byte, bool) {
	f, err := root.Open(name)
	if err != nil {
		return nil, false
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	content, err := io.ReadAll(io.LimitReader(f, maxProjectFile+1))
	return content, err == nil && len(content) <= maxProjectFile
}
