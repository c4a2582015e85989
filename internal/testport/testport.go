// Package testport finds ports for what tests start and what listens only later.
package testport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Free is a port of the loopback on which nobody listens, and none of those that a
// system gives to whoever connects to somewhere: between now and then one of the
// many connections of other tests would take it.
func Free(t testing.TB) int {
	t.Helper()
	var err error
	for range 50 {
		port := 20_000 + rand.IntN(10_000)
		var l net.Listener
		if l, err = net.Listen("tcp", ":"+strconv.Itoa(port)); err == nil {
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			return port
		}
	}
	t.Fatal(err)
	return 0
}

// Addr is Free with the address of the loopback before it: 127.0.0.1:PORT.
func Addr(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Free(t)))
}
