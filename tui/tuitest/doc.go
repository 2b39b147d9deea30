// Package tuitest is the language in which the screen is tested: keys in,
// settled frames out.
//
// The rule it keeps: nothing sleeps. A test runs in a synctest bubble, where
// time stands still until the test lets it pass and the screen is settled when
// every command has answered or waits for the world. The world is Fleet, a fake
// behind every port, which behaves as the real one promises to.
package tuitest
