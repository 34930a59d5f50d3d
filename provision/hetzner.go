package provision

import "context"

const (
	hetznerEndpoint      = "https://api.hetzner.cloud/v1"
	hetznerUserDataLimit = 32 << 10
)

type Hetzner struct{}

var (
	_ Provisioner = (*Hetzner)(nil)
	_ Lister      = (*Hetzner)(nil)
	_ Auditor     = (*Hetzner)(nil)
	_ Preflighter = (*Hetzner)(nil)
)

func NewHetzner(token string) *Hetzner { return &Hetzner{} }

func openHetzner(credential string, opts Options) (Provisioner, error) { return &Hetzner{}, nil }

func (h *Hetzner) ListRegions(ctx context.Context) ([]Region, error)             { return nil, nil }
func (h *Hetzner) ListSizes(ctx context.Context, region string) ([]Size, error) { return nil, nil }
func (h *Hetzner) CreateServer(ctx context.Context, opts CreateOpts) (serverID, ipAddr string, err error) {
	return "", "", nil
}
func (h *Hetzner) GetServer(ctx context.Context, id string) (ServerStatus, string, error) {
	return "", "", nil
}
func (h *Hetzner) DeleteServer(ctx context.Context, id string) error          { return nil }
func (h *Hetzner) ListServers(ctx context.Context) ([]Server, error)          { return nil, nil }
func (h *Hetzner) ListResources(ctx context.Context) ([]Resource, error)      { return nil, nil }
func (h *Hetzner) DeleteResource(ctx context.Context, r Resource) error       { return nil }
func (h *Hetzner) Preflight(ctx context.Context, opts CreateOpts) error       { return nil }
