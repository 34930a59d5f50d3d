# The providers' own command-line clients, from Debian where missing.
CLIENTS         := hcloud
CLIENT_PACKAGES := hcloud-cli

.PHONY: e2e-clients
e2e-clients: build ## The providers' own clients against the simulated clouds (installs them)
	@for tool in $(CLIENTS); do command -v $$tool >/dev/null || missing=1; done; \
	  if [ -n "$${missing:-}" ]; then \
	    [ "$$(id -u)" = 0 ] || { echo 'installing $(CLIENT_PACKAGES) takes root: run this as root, or install them' >&2; exit 1; }; \
	    apt-get update -qq; \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(CLIENT_PACKAGES) </dev/null; \
	  fi
	e2e/clients/run bin/slipway $(CLIENTS)
