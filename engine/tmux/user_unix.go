//go:build unix

package tmux

import "os"

func userID() int { return os.Getuid() }
