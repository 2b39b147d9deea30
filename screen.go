package main

import (
	"context"
	"errors"
)

// screen runs the full-screen program until the user quits.
func (w wiring) screen(context.Context) error {
	return errors.New("the screen is not part of this build; use the commands")
}
