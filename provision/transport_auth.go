package provision

import "context"

// tokenFunc returns the bearer token for one request. It is asked anew for
// each attempt: one that expires is renewed behind it.
type tokenFunc func(ctx context.Context) (string, error)

// staticToken is a credential that is itself the token.
func staticToken(token string) tokenFunc {
	return func(context.Context) (string, error) { return token, nil }
}

// withAuth puts the token on the request and tells the redactor about it
// before anything can go wrong with it.
func withAuth(next step, token tokenFunc, hide *redactor) step {
	return func(ctx context.Context, c *call) (*answer, error) {
		t, err := token(ctx)
		if err != nil {
			return nil, err
		}
		if err := checkToken(t); err != nil {
			return nil, err
		}
		hide.learn(t)
		return next(ctx, c.with("Authorization", "Bearer "+t))
	}
}

// checkToken refuses what cannot stand in a header, without repeating it.
func checkToken(t string) error {
	if t == "" {
		return &ProviderError{Class: ErrUnauthorized, Message: "the credential is empty", Hint: "give the provider's API token"}
	}
	for i := range len(t) {
		if t[i] <= ' ' || t[i] > '~' {
			return &ProviderError{
				Class:   ErrUnauthorized,
				Message: "the credential holds a space, a line break or a character that is not ASCII",
				Hint:    "copy it again, whole and without quotes around it",
			}
		}
	}
	return nil
}
