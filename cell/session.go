package cell

import "github.com/google/uuid"

// SessionID returns the session ID of an app name ("<cell>-<slot>"): a UUIDv5,
// always the same for the same name (spec/cell.txt).
func SessionID(appName string) string {
	namespace := uuid.NewSHA1(uuid.NameSpaceDNS, []byte("devcell.sh"))
	return uuid.NewSHA1(namespace, []byte(appName)).String()
}
