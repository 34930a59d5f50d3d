package provision

import (
	"net/http"
	"strconv"
	"time"
)

// Limits.
//
// Azure counts the requests of a subscription in three buckets, of which
// reading has the largest. It says how much is left of the one that a request
// was taken from, and nothing of its size, which is documented.

const (
	azBucket = 200 // writes, and as many deletes, that can be sent at once
	azRefill = 100 * time.Millisecond
)

// azLimits is a transport that says in the common form what is left of the
// writes or deletes, for the governor. Answers to reads say nothing: there is
// more of them than a fleet needs.
type azLimits struct{ next http.RoundTripper }

func (l azLimits) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	for _, kind := range []string{"Writes", "Deletes"} {
		left, convErr := strconv.Atoi(resp.Header.Get("X-Ms-Ratelimit-Remaining-Subscription-" + kind))
		// Older subscriptions count by the hour, from 1,200 down.
		if convErr != nil || left < 0 || left > azBucket {
			continue
		}
		full := time.Now().Add(time.Duration(azBucket-left) * azRefill)
		resp.Header.Set("RateLimit-Limit", strconv.Itoa(azBucket))
		resp.Header.Set("RateLimit-Remaining", strconv.Itoa(left))
		// In whole seconds: the next one, so that there is time left to pause in.
		resp.Header.Set("RateLimit-Reset", strconv.FormatInt(full.Unix()+1, 10))
	}
	return resp, nil
}

// azClient is the caller's client with that transport.
func azClient(c *http.Client) *http.Client {
	own := http.Client{}
	if c != nil {
		own = *c
	}
	next := own.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	own.Transport = azLimits{next}
	return &own
}
