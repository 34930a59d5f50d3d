package main

import (
	"runtime"
	"runtime/debug"

	"github.com/slipway-dev/slipway/internal/cli"
)

// version is set by the build; see the Makefile.
var version string

// buildVersion describes this build: what the Makefile set, or what the Go
// tool recorded (`go install …@v1.2.3`).
func buildVersion() cli.VersionInfo {
	v := cli.VersionInfo{Version: version, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return orDev(v)
	}
	if v.Version == "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Date = s.Value
		}
	}
	return orDev(v)
}

func orDev(v cli.VersionInfo) cli.VersionInfo {
	if v.Version == "" {
		v.Version = "dev"
	}
	return v
}
