package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/slipway-dev/slipway/enroll"
)

// dockerSocket is where the node's Docker listens; the container has it
// mounted at the same place.
const dockerSocket = "/var/run/docker.sock"

// facts asks the node's Docker, which knows the host better than a container
// does, and falls back to what files say. It takes what it can get.
func (c Config) facts(ctx context.Context) enroll.Facts {
	f := enroll.Facts{Architecture: runtime.GOARCH, AgentVersion: c.Version}
	if data, err := os.ReadFile(c.path("/proc/sys/kernel/osrelease")); err == nil {
		f.Kernel = strings.TrimSpace(string(data))
	}
	if data, err := os.ReadFile(c.path("/etc/hostname")); err == nil {
		f.Hostname = strings.TrimSpace(string(data))
	}
	if data, err := os.ReadFile(c.path("/etc/os-release")); err == nil {
		for _, line := range strings.Split(string(data), "\n") {
			if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
				f.OS = strings.Trim(strings.TrimSpace(v), `"'`)
			}
		}
	}
	if d, err := askDocker(ctx, c.path(dockerSocket)); err == nil {
		f.DockerVersion = d.ServerVersion
		f.OS, f.Kernel, f.Hostname = cmp.Or(d.OperatingSystem, f.OS), cmp.Or(d.KernelVersion, f.Kernel), cmp.Or(d.Name, f.Hostname)
	}
	return f
}

type dockerInfo struct {
	OperatingSystem, KernelVersion, ServerVersion, Name string
}

// askDocker reads GET /info of the Docker Engine API.
func askDocker(ctx context.Context, socket string) (dockerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/info", nil)
	if err != nil {
		return dockerInfo{}, err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return dockerInfo{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	var d dockerInfo
	return d, json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&d)
}
