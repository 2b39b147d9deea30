package fleet

import "errors"

// Errors that callers tell apart; what wraps them says which cell or slot, and
// what to do next.
var (
	ErrNotFound    = errors.New("not found")
	ErrLive        = errors.New("a program runs in it")
	ErrUnavailable = errors.New("not available")
	ErrApproval    = errors.New("waits for approval")
)
