package fleet_test

import (
	"flag"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// thorough tells that the long forms of the crash matrix and of the random
// model are wanted: every effect, and as many lives as -rapid.checks says.
var thorough = os.Getenv("FLEET_THOROUGH") != ""

func TestMain(m *testing.M) {
	flag.Parse()
	if checks := flag.Lookup("rapid.checks"); !thorough && checks.Value.String() == checks.DefValue {
		lives := "25"
		if raced {
			lives = "8"
		}
		if err := checks.Value.Set(lives); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}
