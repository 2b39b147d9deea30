package egress

import "syscall"

// refuseOwn is asked with the resolved address, right before the connection.
func refuseOwn(_, address string, _ syscall.RawConn) error {
	if ownAddress(address) {
		return errOwn
	}
	return nil
}
