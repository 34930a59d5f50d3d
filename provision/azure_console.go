package provision

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Console.

// ConsoleOutput returns the serial console's text since the last start: POST
// .../retrieveBootDiagnosticsData, and then the log itself from the storage
// that Azure keeps for it. It is empty while a server has said nothing yet.
func (a *Azure) ConsoleOutput(ctx context.Context, id string) (string, error) {
	const op = "read console"
	if err := a.checkID(op, "server", id); err != nil {
		return "", err
	}
	var console azConsole
	_, err := a.send(ctx, call{
		op: op, method: http.MethodPost, path: a.vmPath(id) + "/retrieveBootDiagnosticsData", query: apiVersion(azCompute), harmless: true,
	}, &console)
	if err != nil {
		return "", err
	}
	if console.SerialLog == "" {
		return "", nil
	}
	ans, err := a.plainGet(ctx, op, console.SerialLog)
	if err != nil {
		return "", err
	}
	if ans.status == http.StatusNotFound {
		return "", nil
	}
	if ans.status != http.StatusOK {
		return "", &ProviderError{
			Provider: "azure", Op: op, Status: ans.status, Class: classOfStatus(ans.status), Message: "the storage of the console's log refuses it",
		}
	}
	return string(ans.body), nil
}

// plainGet reads an address without a token. The address may itself be a
// secret: it is signed. So no error repeats it.
func (a *Azure) plainGet(ctx context.Context, op, address string) (*answer, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "https" && !strings.HasPrefix(a.endpoint, "http://") {
		return nil, a.fail(ErrUnavailable, op, "", "the answer names an address that is none, or not encrypted")
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, a.fail(ErrUnavailable, op, "", "the answer names an address that is none")
	}
	req.Header.Set("User-Agent", a.labels.short+" provision-go")
	resp, err := a.plain.Do(req)
	if err == nil {
		defer resp.Body.Close()
		var ans *answer
		if ans, err = readAnswer(resp, maxAnswerBytes); err == nil {
			return ans, nil
		}
	}
	e := networkError(ctx, inner(err), u.Host)
	e.Provider, e.Op = "azure", op
	e.cause = fmt.Errorf("%w", inner(err))
	return nil, e
}
