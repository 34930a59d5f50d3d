package cloudsim_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/slipway-dev/slipway/cloudsim"
)

func TestNewTLS(t *testing.T) {
	config, ca, err := cloudsim.NewTLS("127.0.0.1", "localhost", "::1")
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.TLS = config
	srv.StartTLS()
	t.Cleanup(srv.Close)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		t.Fatal("the CA is no PEM")
	}
	for name, pool := range map[string]*x509.CertPool{"with its CA": pool, "without": x509.NewCertPool()} {
		for _, host := range []string{"127.0.0.1", "localhost", "elsewhere.example"} {
			conn, err := tls.Dial("tcp", srv.Listener.Addr().(*net.TCPAddr).String(), &tls.Config{RootCAs: pool, ServerName: host})
			if want := name == "with its CA" && host != "elsewhere.example"; (err == nil) != want {
				t.Errorf("%s, as %s: %v", name, host, err)
			}
			if err == nil {
				_ = conn.Close()
			}
		}
	}
	if _, _, err := cloudsim.NewTLS(); err == nil {
		t.Error("a certificate for nobody")
	}
}
