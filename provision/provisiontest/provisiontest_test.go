package provisiontest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/slipway-dev/slipway/provision/provisiontest"
)

func TestAProvisionerThatKeepsTheContractPasses(t *testing.T) {
	provisiontest.Run(t, provisiontest.Harness{Open: openMem(""), Around: synctest.Test})
}

const bugVariable = "PROVISIONTEST_BUG"

// TestBroken runs the suite on a broken Provisioner; the test below starts it
// in a process of its own, since it fails.
func TestBroken(t *testing.T) {
	bug := os.Getenv(bugVariable)
	if bug == "" {
		t.Skip("runs in the process of TestEachBrokenSentenceIsFound")
	}
	provisiontest.Run(t, provisiontest.Harness{Open: openMem(bug)})
}

// TestEachBrokenSentenceIsFound breaks one sentence of the contract at a time
// and wants the clause that holds it to fail.
func TestEachBrokenSentenceIsFound(t *testing.T) {
	for bug, clause := range map[string]string{
		"regions twice":              "Regions/AreListedOnceEachWithIDAndName",
		"odd prices":                 "Sizes/OfARegionAreOfferedThere",
		"fewer sizes without region": "Sizes/OfNoRegionIncludeThoseOfEach",
		"ignores the context":        "Create/MakesNothingWhenItsContextHasEnded",
		"forgets keys":               "Idempotency/ARepeatReturnsTheSameServer",
		"ignores options":            "Idempotency/OtherOptionsAreAConflict",
		"repeats blindly":            "Idempotency/ALostAnswerMakesNoSecondServer",
		"open by default":            "SSH/IsClosedUnlessAskedFor",
		"leaves the firewall":        "SSH/GoesAwayWithItsServer",
		"get of nothing is pending":  "Get/OfNoServerIsNotFound",
		"bills after the delete":     "Delete/LeavesNothing",
		"delete of nothing fails":    "Delete/OfNoServerIsNoError",
		"a malformed id is gone":     "Delete/OfAMalformedIDIsInvalidAndNotSuccess",
		"first page only":            "List/ShowsEveryServerOfManyPages",
		"servers cost nothing":       "Audit/ShowsTheServerAsBillable",
		"preflight makes a server":   "Preflight/PassesWhatCreateTakesAndMakesNothing",
		"quota taken for capacity":   "Errors/NoQuotaIsQuotaAndLeavesNothing",
		"leaks the credential":       "Errors/AWrongCredentialIsUnauthorizedEverywhere",
		"two classes":                "Errors/AWrongCredentialIsUnauthorizedEverywhere",
	} {
		t.Run(bug, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestBroken$", "-test.v")
			cmd.Env = append(os.Environ(), bugVariable+"="+bug)
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), "--- FAIL: TestBroken/"+clause) {
				t.Errorf("%s does not fail (exit: %v):\n%s", clause, err, out)
			}
		})
	}
}
