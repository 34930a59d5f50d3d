package enroll_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/enroll/enrolltest"
)

// What a join costs the control plane, but for TLS and its store.
func BenchmarkJoin(b *testing.B) {
	ca, err := enroll.OpenCA(b.TempDir(), enroll.CAOptions{})
	if err != nil {
		b.Fatal(err)
	}
	reg := &enrolltest.Registry{}
	h := enroll.NewHandler(ca, reg, enroll.HandlerOptions{JoinsPerMinute: 1 << 30})
	body, err := json.Marshal(map[string]string{"token": reg.Issue("n", "n", 24*time.Hour).Reveal(), "csr": vectorCSR(b, "p256")})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if a := serve(b, h, string(body)); a.status != http.StatusOK {
			b.Fatal(a.body)
		}
	}
}
