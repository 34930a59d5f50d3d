# Slipway: `make demo` shows the main job, `make test` runs the tests. Both need
# Go, git and make; `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

GO      ?= go
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

# The race detector needs a C compiler; without one the tests run without it,
# and say so.
RACE := $(shell command -v $${CC:-gcc} >/dev/null 2>&1 && echo -race)

# The tests' databases sync to disk at every step, as they must; on a disk in
# memory that costs nothing. What go builds stays where it was.
TEST_ENV := $(shell test -d /dev/shm -a -w /dev/shm && echo GOTMPDIR=$${TMPDIR:-/tmp} TMPDIR=/dev/shm)

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

.PHONY: build
build: ## Build the command into bin/
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/slipway ./cmd/slipway

.PHONY: demo
demo: build ## Create, watch, price and delete nodes on the built-in cloud
	./bin/slipway demo

.PHONY: test
test: ## Run the tests, with the race detector where there is a C compiler
	@test -n '$(RACE)' || echo 'note: no C compiler, so the tests run without the race detector'
	$(TEST_ENV) $(GO) test $(RACE) -timeout 8m ./...

.PHONY: cover
cover: ## Tests with coverage, by package
	$(GO) test -cover ./...

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, and govulncheck where its database is reachable
	@out="$$(gofmt -l $$(git ls-files '*.go'))"; test -z "$$out" || { echo "gofmt would change: $$out"; exit 1; }
	$(GO) vet ./...
	cd conformance && $(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	@if curl -fsS --max-time 5 -o /dev/null https://vuln.go.dev/index/modules.json 2>/dev/null; \
	  then $(GO) run $(GOVULNCHECK) ./...; \
	  else echo 'note: the vulnerability database is not reachable; govulncheck is left out'; fi

.PHONY: conformance
conformance: ## The official SDKs against the simulated cloud, and our wire bodies against their types
	cd conformance && $(GO) test $(RACE) -timeout 10m ./...

.PHONY: verify
verify: ## Generated files and module files are what they would be if made now
	$(GO) mod tidy -diff
	cd conformance && $(GO) mod tidy -diff

.PHONY: fuzz
FUZZTIME ?= 30s
fuzz: ## Every fuzz target for FUZZTIME each (default 30s)
	@for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p; \
	  done; done

.PHONY: bench
bench: ## The benchmarks; bench/README.md has results and how to read them
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin dist .cache

-include make/*.mk
