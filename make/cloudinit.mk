# The tools that read what RenderCloudInit renders; from Debian where missing.
CLOUDINIT_TOOLS := cloud-init shellcheck systemd-analyze iptables unshare /usr/bin/python3
CLOUDINIT_PACKAGES := cloud-init shellcheck systemd iptables util-linux python3-yaml

.PHONY: test-cloudinit
test-cloudinit: ## User-data against cloud-init, systemd, shellcheck and iptables (installs them)
	@for tool in $(CLOUDINIT_TOOLS); do command -v $$tool >/dev/null || missing=1; done; \
	  if [ -n "$${missing:-}" ]; then \
	    [ "$$(id -u)" = 0 ] || { echo 'installing $(CLOUDINIT_PACKAGES) takes root: run this as root, or install them' >&2; exit 1; }; \
	    apt-get update -qq; \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(CLOUDINIT_PACKAGES) </dev/null; \
	  fi
	CLOUDINIT_TOOLS=require $(GO) test -count=1 -run 'Tools|CloudInit|SetupScript' ./provision
