package provision_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/provision"
)

// startMoto runs moto's server, an independent simulation of EC2, where python3
// has it. Its shapes and filters are a second opinion; it does not judge client
// tokens, groups in use, or anything that takes time.
func startMoto(t *testing.T) (address string) {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed, so moto cannot judge")
	}
	if err := exec.CommandContext(t.Context(), python, "-c", "import moto.server, flask").Run(); err != nil {
		t.Skip("python3 has no moto with its server (pip install 'moto[server]'), so it cannot judge")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, python, "-m", "moto.server", "-H", "127.0.0.1", "-p", port)
	server.Env = append(os.Environ(), "MOTO_AMIS_PATH="+motoImages(t), "MOTO_ENABLE_AMI_VALIDATION=true", "MOTO_EC2_ENABLE_INSTANCE_TYPE_VALIDATION=true")
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = server.Wait() // it was killed
		if t.Failed() {
			text := log.String()
			t.Logf("moto's own log ends so: %s", text[max(0, len(text)-4000):])
		}
	})
	address = "http://127.0.0.1:" + port
	deadline := time.After(time.Minute)
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		if resp, err := http.Get(address + "/moto-api/"); err == nil { //nolint:noctx // a local server
			_ = resp.Body.Close()
			return address
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("moto did not start within a minute")
		}
	}
}

// motoImages is a list of images that moto loads: it knows no Ubuntu 24.04.
func motoImages(t *testing.T) string {
	t.Helper()
	var images []map[string]any
	for arch, vendor := range map[string]string{"amd64": "x86_64", "arm64": "arm64"} {
		for i, date := range []string{"20261110", "20261124"} {
			name := "ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-" + arch + "-server-" + date
			images = append(images, map[string]any{
				"ami_id": fmt.Sprintf("ami-0%016x", 16*len(arch)+i+len(vendor)), "state": "available", "public": true, "owner_id": "099720109477",
				"image_location": "amazon/" + name, "sriov": "simple", "root_device_type": "ebs", "root_device_name": "/dev/sda1",
				"description": name, "image_type": "machine", "platform": nil, "architecture": vendor, "name": name,
				"virtualization_type": "hvm", "hypervisor": "xen", // a date, moto reads for one region only
			})
		}
	}
	data, err := json.Marshal(images)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "images.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestAWSAgainstMoto lives a server's life in a cloud that none of us wrote.
func TestAWSAgainstMoto(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server in Python")
	}
	address := startMoto(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	p, err := provision.Open("aws", `{"access_key_id": "testing", "secret_access_key": "testing-secret", "region": "eu-central-1"}`,
		provision.Options{Endpoint: address, ShortName: "acme", Labels: map[string]string{"acme-fleet": "f1"}})
	if err != nil {
		t.Fatal(err)
	}
	a := p.(*provision.AWS)
	regions, err := a.ListRegions(ctx)
	if err != nil || len(regions) < 10 {
		t.Fatalf("regions: %v, %v", regions, err)
	}
	if err := a.Preflight(ctx, awsNode("node-1")); err != nil {
		t.Fatalf("preflight: %v", err)
	}
	ids := map[string]bool{}
	for i, size := range []string{"t3.small", "t4g.small"} {
		opts := awsNode(fmt.Sprintf("node-%d", i))
		opts.Size, opts.AllowSSHInbound = size, i == 1
		opts.SSHSourceCIDRs = []string{"198.51.100.0/24", "2001:db8::/32"}
		if i == 1 {
			opts.SSHKeys = []string{awsPublicKey}
		}
		id, _, err := a.CreateServer(ctx, opts)
		if err != nil {
			t.Fatalf("create: %v", err)
		}
		if again, ip, err := a.CreateServer(ctx, opts); again != id || ip == "" || err != nil {
			t.Errorf("repeat: %s at %q, %v; want %s", again, ip, err, id)
		}
		other := opts
		other.UserData += "# other\n"
		if _, _, err := a.CreateServer(ctx, other); !errors.Is(err, provision.ErrConflict) {
			t.Errorf("other options: %v", err)
		}
		if status, ip, err := a.GetServer(ctx, id); status != provision.ServerStatusRunning || ip == "" || err != nil {
			t.Errorf("get: %q at %q, %v", status, ip, err)
		}
		ids[id] = true
	}
	servers, err := a.ListServers(ctx)
	if err != nil || len(servers) != len(ids) {
		t.Fatalf("list: %+v, %v", servers, err)
	}
	for _, s := range servers {
		if !ids[s.ID] || s.Name == "" || s.Labels["acme-fleet"] != "f1" || s.CreatedAt.IsZero() {
			t.Errorf("listed: %+v", s)
		}
	}
	resources, err := a.ListResources(ctx)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, r := range resources {
		kinds[r.Kind]++
	}
	if kinds[provision.KindServer] != 2 || kinds[provision.KindVolume] != 2 || kinds[provision.KindFirewall] != 2 || kinds[provision.KindSSHKey] != 1 {
		t.Errorf("audit: %v", kinds)
	}
	for _, s := range servers {
		for range 2 {
			if err := a.DeleteServer(ctx, s.ID); err != nil {
				t.Errorf("delete: %v", err)
			}
		}
		if _, _, err := a.GetServer(ctx, s.ID); !errors.Is(err, provision.ErrNotFound) {
			t.Errorf("get after the delete: %v", err)
		}
	}
	for _, r := range resources {
		if !r.Shared && r.Kind == provision.KindFirewall {
			if err := a.DeleteResource(ctx, r); err != nil {
				t.Errorf("delete of the group, again: %v", err)
			}
		}
	}
	if servers, err := a.ListServers(ctx); err != nil || len(servers) != 0 {
		t.Errorf("left: %+v, %v", servers, err)
	}
}
