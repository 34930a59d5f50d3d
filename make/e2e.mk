.PHONY: crash
crash: ## Kill a real control plane with SIGKILL in the middle of creates and deletes
	SLIPWAY_E2E=1 $(TEST_ENV) $(GO) test -count=1 -timeout 15m ./e2e/crash

.PHONY: thorough
thorough: ## Stop a node's life at every single effect, and many random lives
	FLEET_THOROUGH=1 $(TEST_ENV) $(GO) test -count=1 -timeout 20m -run 'TestCrashMatrix|TestModel' ./internal/fleet
