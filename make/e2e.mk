.PHONY: crash
crash: ## Kill a real control plane with SIGKILL in the middle of creates and deletes
	SLIPWAY_E2E=1 $(TEST_ENV) $(GO) test -count=1 -timeout 15m ./e2e/crash
