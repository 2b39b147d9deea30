//go:build !linux && !darwin

package state

import (
	"errors"
	"time"
)

// Without the kernel's change time nothing is remembered.

func stateOf(string) (fileState, error) { return fileState{}, errors.ErrUnsupported }

func bootedAt(time.Time) (time.Time, bool) { return time.Time{}, false }
