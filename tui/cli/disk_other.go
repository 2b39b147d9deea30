//go:build !unix

package cli

import "errors"

func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }
