//go:build !unix

package agent

// nonBlocking has no meaning where there are no named pipes in directories.
const nonBlocking = 0
