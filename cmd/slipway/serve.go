package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-dev/slipway/client"
	"github.com/slipway-dev/slipway/enroll"
	"github.com/slipway-dev/slipway/internal/api"
	"github.com/slipway-dev/slipway/internal/cli"
	"github.com/slipway-dev/slipway/internal/fleet"
	"github.com/slipway-dev/slipway/internal/store"
	"github.com/slipway-dev/slipway/provision"
)

// controlPlane is a control plane that is ready to run.
type controlPlane struct {
	log       *slog.Logger
	store     *store.Store
	fleet     *fleet.Fleet
	alarms    store.RunOptions
	nodes     net.Listener
	api       net.Listener
	nodesHTTP http.Handler
	apiHTTP   http.Handler
	nodesTLS  *tls.Config
	apiTLS    *tls.Config
	info      client.Info
	url       string // of the API
	tokenFile string
}

// serve runs a control plane until ctx ends.
func serve(ctx context.Context, o cli.ServeOptions) error {
	cp, err := openControlPlane(ctx, o, planeTuning{})
	if err != nil {
		return err
	}
	fmt.Fprintf(o.IO.Err, "control plane %s\n  nodes join at   %s (listening on %s)\n  API             %s\n  API token       %s\n  CA fingerprint  %s\n",
		cp.info.Version, cp.info.Advertise, cp.nodes.Addr(), cp.url, cp.tokenFile, cp.info.CAFingerprint)
	return cp.run(ctx)
}

// planeTuning is what a demo sets otherwise than people want it.
type planeTuning struct {
	timing    fleet.Timing
	alarms    store.RunOptions
	heartbeat time.Duration
}

func openControlPlane(ctx context.Context, o cli.ServeOptions, tune planeTuning) (_ *controlPlane, err error) {
	if err := os.MkdirAll(o.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	cp := &controlPlane{log: o.Logger, alarms: tune.alarms}
	defer func() {
		if err != nil {
			err = errors.Join(err, cp.close())
		}
	}()
	sealer, err := store.OpenSealer(filepath.Join(o.DataDir, "keys", "age.key"))
	if err != nil {
		return nil, err
	}
	// The store comes before the rest: it keeps a second process out.
	if cp.store, err = store.Open(ctx, store.Options{Path: filepath.Join(o.DataDir, "slipway.db"), Sealer: sealer, Logger: o.Logger.With("room", "store")}); err != nil {
		return nil, err
	}
	ca, err := enroll.OpenCA(filepath.Join(o.DataDir, "ca"), enroll.CAOptions{Name: "Slipway CA"})
	if err != nil {
		return nil, err
	}
	if err := cp.listen(ctx, o, ca); err != nil {
		return nil, err
	}
	if err := cp.openFleet(o, ca, tune.timing); err != nil {
		return nil, err
	}
	cp.nodesHTTP = enroll.NewHandler(ca, cp.fleet, enroll.HandlerOptions{Logger: o.Logger.With("room", "enroll"), HeartbeatInterval: tune.heartbeat})
	cp.tokenFile = filepath.Join(o.DataDir, "api-token")
	token, err := api.OpenToken(cp.tokenFile)
	if err != nil {
		return nil, err
	}
	if cp.apiHTTP, err = api.New(cp.fleet, api.Options{Token: token, Info: cp.info, Logger: o.Logger.With("room", "api")}); err != nil {
		return nil, err
	}
	return cp, client.WriteConfig(o.DataDir, client.Config{URL: cp.url, CAFingerprint: cp.info.CAFingerprint, TokenFile: "api-token"})
}

// listen opens both doors, and works out how they are called.
func (cp *controlPlane) listen(ctx context.Context, o cli.ServeOptions, ca *enroll.CA) error {
	var lc net.ListenConfig
	var err error
	if cp.nodes, err = lc.Listen(ctx, "tcp", o.Listen); err != nil {
		return fmt.Errorf("the nodes' listener (--listen): %w", err)
	}
	if cp.api, err = lc.Listen(ctx, "tcp", o.APIListen); err != nil {
		return fmt.Errorf("the API's listener (--api-listen): %w", err)
	}
	advertise := o.Advertise
	if advertise == "" {
		advertise = ownAddress(o.Listen, cp.nodes.Addr())
	}
	host, port, err := net.SplitHostPort(advertise)
	if err != nil || host == "" || !validPort(port) {
		return fmt.Errorf("--advertise %q is not of the form host:port", advertise)
	}
	apiAddress := ownAddress(o.APIListen, cp.api.Addr())
	apiHost, _, _ := net.SplitHostPort(apiAddress)
	cp.nodesTLS = ca.NodeTLSConfig(host, "localhost", "127.0.0.1", "::1")
	cp.apiTLS = &tls.Config{
		MinVersion:     tls.VersionTLS13,
		GetCertificate: ca.ServerCertificate(append([]string{apiHost, "localhost", "127.0.0.1", "::1"}, o.APIHosts...)...),
		NextProtos:     []string{"h2", "http/1.1"},
	}
	cp.url = "https://" + apiAddress
	cp.info = client.Info{Version: buildVersion().Version, Advertise: advertise, CAFingerprint: string(ca.Fingerprint())}
	return nil
}

func validPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n > 0 && n < 1<<16
}

// ownAddress is how others reach a listener: as it was asked for, or, when it
// listens everywhere, by this machine's own address. The port is the real one.
func ownAddress(asked string, bound net.Addr) string {
	_, port, _ := net.SplitHostPort(bound.String())
	if host, _, err := net.SplitHostPort(asked); err == nil && host != "" {
		if ip := net.ParseIP(host); ip == nil || !ip.IsUnspecified() {
			return net.JoinHostPort(host, port)
		}
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && !n.IP.IsPrivate() {
			return net.JoinHostPort(n.IP.String(), port)
		}
	}
	return net.JoinHostPort("127.0.0.1", port)
}

func (cp *controlPlane) openFleet(o cli.ServeOptions, ca *enroll.CA, timing fleet.Timing) error {
	key, err := tokenKey(o.DataDir)
	if err != nil {
		return err
	}
	if cp.info.FleetID, err = fleetID(o.DataDir); err != nil {
		return err
	}
	if o.JoinTimeout > 0 {
		timing.JoinTimeout = o.JoinTimeout
	}
	cp.fleet, err = fleet.New(fleet.Config{
		Store: cp.store,
		Clouds: fleetClouds{fleetID: cp.info.FleetID, getenv: os.Getenv, opts: provision.Options{
			ShortName: shortName, Logger: o.Logger.With("room", "provision"),
		}},
		TokenKey: key, FleetID: cp.info.FleetID, Advertise: cp.info.Advertise, CAFingerprint: cp.info.CAFingerprint,
		ShortName: shortName, AgentImage: o.AgentImage, AgentVersion: cp.info.Version,
		Logger: o.Logger.With("room", "fleet"), Timing: timing,
	})
	return err
}

// run serves until ctx ends, and returns when all is put away.
func (cp *controlPlane) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return cp.store.Run(ctx, cp.fleet, cp.alarms) })
	g.Go(func() error { return serveHTTP(ctx, cp.nodes, cp.nodesTLS, cp.nodesHTTP, cp.log) })
	g.Go(func() error { return serveHTTP(ctx, cp.api, cp.apiTLS, cp.apiHTTP, cp.log) })
	return errors.Join(g.Wait(), cp.store.Close())
}

func (cp *controlPlane) close() error {
	var errs []error
	for _, l := range []net.Listener{cp.nodes, cp.api} {
		if l != nil {
			errs = append(errs, l.Close())
		}
	}
	if cp.store != nil {
		errs = append(errs, cp.store.Close())
	}
	return errors.Join(errs...)
}

// serveHTTP serves until ctx ends; a nil TLS configuration means none.
func serveHTTP(ctx context.Context, l net.Listener, cfg *tls.Config, h http.Handler, log *slog.Logger) error {
	srv := &http.Server{
		Handler: h, TLSConfig: cfg,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		// Streams end with the server, not with their clients' patience.
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    slog.NewLogLogger(log.With("room", "http").Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if err := srv.Shutdown(grace); err != nil {
			_ = srv.Close() // what does not end is ended
		}
	})
	var err error
	if cfg != nil {
		err = srv.ServeTLS(l, "", "")
	} else {
		err = srv.Serve(l)
	}
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
