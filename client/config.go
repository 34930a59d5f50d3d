package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The variables that say which control plane is meant, and how to be let in.
// Each wins over the file that the control plane leaves in its data directory.
const (
	EnvURL           = "SLIPWAY_URL"            // https://host:port
	EnvCAFingerprint = "SLIPWAY_CA_FINGERPRINT" // sha256:<64 hex digits>; empty means the system's roots
	EnvToken         = "SLIPWAY_TOKEN"          // the API token itself
	EnvTokenFile     = "SLIPWAY_TOKEN_FILE"     // a file that holds the API token
	EnvDataDir       = "SLIPWAY_DATA_DIR"       // where client.json is
)

// ConfigFile is the name, in the data directory, of the file in which a
// control plane says how it can be reached from the same machine.
const ConfigFile = "client.json"

// Config is what ConfigFile holds. It has no secret but the path to one.
type Config struct {
	URL           string `json:"url"`
	CAFingerprint string `json:"ca_fingerprint"`
	// TokenFile is absolute, or relative to the file itself.
	TokenFile string `json:"token_file"`
}

// ErrNoControlPlane tells that nothing says which control plane is meant.
var ErrNoControlPlane = errors.New("no control plane is known")

// DataDir returns the control plane's data directory: SLIPWAY_DATA_DIR, or
// $XDG_DATA_HOME/slipway, or ~/.local/share/slipway.
func DataDir(getenv func(string) string) string {
	if d := getenv(EnvDataDir); d != "" {
		return d
	}
	// The XDG rules say that a relative path there is to be ignored.
	if d := getenv("XDG_DATA_HOME"); filepath.IsAbs(d) {
		return filepath.Join(d, "slipway")
	}
	if h := getenv("HOME"); h != "" {
		return filepath.Join(h, ".local", "share", "slipway")
	}
	return filepath.Join(".", "slipway-data")
}

// WriteConfig writes c to dir, readable by its owner alone, in one step.
func WriteConfig(dir string, c Config) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ConfigFile+".*") // made 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", ConfigFile, err)
	}
	_, err = f.Write(append(data, '\n'))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, ConfigFile))
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", ConfigFile, err)
	}
	return nil
}

// ReadConfig reads the file that WriteConfig wrote to dir. TokenFile is
// absolute afterwards when dir is.
func ReadConfig(dir string) (Config, error) {
	path := filepath.Join(dir, ConfigFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, err
	}
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return Config{}, fmt.Errorf("%s is not readable as JSON: %w", path, err)
	}
	if c.TokenFile != "" && !filepath.IsAbs(c.TokenFile) {
		c.TokenFile = filepath.Join(dir, c.TokenFile)
	}
	return c, nil
}

// Discover returns how to reach the control plane that is meant: the variables
// first, then the ConfigFile of the data directory. What the file says of the
// token and the CA counts only for the file's own address: a token is never
// sent to an address that it was not made for. An error that is
// ErrNoControlPlane says where was looked.
func Discover(getenv func(string) string) (Options, error) {
	dir := DataDir(getenv)
	c, err := ReadConfig(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Options{}, err
	}
	url := getenv(EnvURL)
	if url == "" && c.URL == "" {
		return Options{}, &Error{
			Class:   ClassUnreachable,
			Message: fmt.Sprintf("no control plane is known: %s is not set, and %s does not exist", EnvURL, filepath.Join(dir, ConfigFile)),
			Hint:    "start one on this machine with `slipway serve`, or set " + EnvURL + ", " + EnvCAFingerprint + " and " + EnvTokenFile + " to reach one elsewhere",
			Err:     ErrNoControlPlane,
		}
	}
	o := Options{URL: c.URL, CAFingerprint: c.CAFingerprint, TokenFile: c.TokenFile}
	if url != "" && strings.TrimRight(url, "/") != strings.TrimRight(c.URL, "/") {
		o = Options{URL: url}
	}
	if v := getenv(EnvCAFingerprint); v != "" {
		o.CAFingerprint = v
	}
	if v := getenv(EnvTokenFile); v != "" {
		o.Token, o.TokenFile = "", v
	}
	if v := getenv(EnvToken); v != "" {
		o.Token, o.TokenFile = v, ""
	}
	return o, nil
}
