package api_test

import (
	"github.com/slipway-dev/slipway/internal/api"
	"github.com/slipway-dev/slipway/internal/api/apitest"
	"github.com/slipway-dev/slipway/internal/fleet"
)

var (
	_ api.Fleet = (*fleet.Fleet)(nil)
	_ api.Fleet = (*apitest.Fleet)(nil)
)
