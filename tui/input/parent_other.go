//go:build unix && !linux && !darwin

package input

import "errors"

func parentOf(int) (int, error) { return 0, errors.New("the parent's parent is unknown here") }
