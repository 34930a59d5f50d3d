package apitest

import (
	"context"
	"net"
	"net/http/httptest"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/internal/api"
)

// Token is the API token of test servers.
const Token = "swat_test-token-that-is-long-enough-to-be-one"

// Serve serves the API over f at a loopback address, without TLS, until close
// is called.
func Serve(f api.Fleet, o api.Options) (url string, close func(), err error) {
	if o.Token == "" {
		o.Token = Token
	}
	if o.Info == (client.Info{}) {
		o.Info = client.Info{Version: "v0.1.0", FleetID: "fleet-1", Advertise: "cp.example.com:8443", CAFingerprint: Fingerprint}
	}
	h, err := api.New(f, o)
	if err != nil {
		return "", nil, err
	}
	s := httptest.NewUnstartedServer(h)
	ctx, cancel := context.WithCancel(context.Background())
	s.Config.BaseContext = func(l net.Listener) context.Context { return ctx }
	s.Start()
	return s.URL, func() { cancel(); s.CloseClientConnections(); s.Close() }, nil
}
