//go:build !linux

package main

func asAgent() (code int, is bool) { return 0, false }
