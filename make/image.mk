# The agent's container image, without Docker. The time in it is the commit's,
# so that one commit gives one image wherever it is built.
IMAGE_REPO ?= ghcr.io/slipway-dev/agent
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
AGENTIMAGE = SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) $(GO) run ./tools/agentimage -go '$(GO)' \
  -repo '$(IMAGE_REPO)' -version '$(VERSION)' -revision "$$(git rev-parse HEAD 2>/dev/null || true)"

.PHONY: image
image: ## Build the agent's image into dist/, for amd64 and arm64, without Docker
	$(AGENTIMAGE)

.PHONY: push-image
push-image: ## Build the agent's image and push it to IMAGE_REPO, as the latest too with LATEST=1
	$(AGENTIMAGE) -push $(if $(LATEST),-latest)
