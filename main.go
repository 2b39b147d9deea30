// Command cellmux is a full-screen workspace manager for coding agents.
package main

func main() {}
