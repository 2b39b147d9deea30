package docker

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// A pane that opens in a running cell asks one question first: does the
// container run? The docker command takes longer to start than the daemon to
// answer, so this one question goes to the daemon's socket. Whatever is unusual
// about the answer is no answer: the command is asked then.

// glancePatience bounds the question; it is asked on the way to a pane.
const glancePatience = time.Second

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 4 << 20

// glance looks at a container through the daemon's socket. ok false means that
// nothing is known, never that there is no container.
func (d *Docker) glance(ctx context.Context, name string) (b box, ok bool) {
	socket := d.socket()
	if socket == "" {
		return box{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, min(glancePatience, d.o.Deadline))
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/containers/"+url.PathEscape(name)+"/json", nil)
	if err != nil {
		return box{}, false
	}
	response, err := client.Do(request)
	if err != nil {
		return box{}, false
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return box{}, false
	}
	var answer struct {
		ID     string `json:"Id"`
		State  struct{ Status string }
		Config struct{ Labels map[string]string }
	}
	if json.NewDecoder(io.LimitReader(response.Body, maxAnswer)).Decode(&answer) != nil {
		return box{}, false
	}
	return d.box(answer.ID, answer.State.Status, answer.Config.Labels), true
}

// socket is where the docker command would find its daemon; "" where that takes
// more than a look at the environment.
func (d *Docker) socket() string {
	if host := d.getenv("DOCKER_HOST"); host != "" {
		path, _ := strings.CutPrefix(host, "unix://")
		if !filepath.IsAbs(path) {
			return ""
		}
		return path
	}
	if d.getenv("CONTAINER_HOST") != "" || d.context() != "" || filepath.Base(d.program()) != "docker" {
		return ""
	}
	return "/var/run/docker.sock"
}
