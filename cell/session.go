package cell

import "github.com/google/uuid"

// SessionID returns the session ID of an app name ("<cell>-<slot>"): a UUIDv5 in
// the namespace UUIDv5(DNS, "devcell.sh"), always the same for the same name, so
// that an agent resumes its conversation (spec/cell.txt).
func SessionID(appName string) string {
	namespace := uuid.NewSHA1(uuid.NameSpaceDNS, []byte("devcell.sh"))
	return uuid.NewSHA1(namespace, []byte(appName)).String()
}
