package cfg

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"
)

// Volume is a directory or file of the host inside a cell.
type Volume struct {
	Host, Guest string // absolute
	ReadOnly    bool
}

// ParseVolume reads "/path" (the same on both sides) or "host:guest[:options]".
// Options are separated by commas: ro, rw, and the z and Z of SELinux, which
// engines that know no labels ignore. Both paths must be absolute by now: ~ and
// relative paths are resolved when the file is loaded.
func ParseVolume(s string) (Volume, error) {
	parts := strings.Split(s, ":")
	if len(parts) > 3 {
		return Volume{}, fmt.Errorf("volume %s has more than three parts: write host:guest[:ro]", QuoteTOML(s))
	}
	v := Volume{Host: parts[0], Guest: parts[0]}
	if len(parts) > 1 {
		v.Guest = parts[1]
	}
	if len(parts) == 3 {
		for option := range strings.SplitSeq(parts[2], ",") {
			switch option {
			case "ro":
				v.ReadOnly = true
			case "rw", "z", "Z":
			default:
				return Volume{}, fmt.Errorf("volume %s: unknown option %s, known are ro and rw", QuoteTOML(s), QuoteTOML(option))
			}
		}
	}
	if !filepath.IsAbs(v.Host) {
		return Volume{}, fmt.Errorf("volume %s: the host's path must begin with /, ~/ or ./", QuoteTOML(s))
	}
	if !path.IsAbs(v.Guest) {
		return Volume{}, fmt.Errorf("volume %s: the path inside must begin with /", QuoteTOML(s))
	}
	v.Host, v.Guest = filepath.Clean(v.Host), path.Clean(v.Guest)
	return v, nil
}
