//go:build unix

package local

import (
	"io"
	"net"
	"time"

	"golang.org/x/crypto/ssh"
)

// forward connects a direct-tcpip channel with where it wants to go, as seen
// from the node.
func forward(c ssh.NewChannel, may grants) {
	var to struct {
		Host       string
		Port       uint32
		OriginHost string
		OriginPort uint32
	}
	if err := ssh.Unmarshal(c.ExtraData(), &to); err != nil || to.Port > 65535 {
		_ = c.Reject(ssh.ConnectionFailed, "the request names no host and port")
		return
	}
	if !may.forward {
		_ = c.Reject(ssh.Prohibited, "this key may not forward ports")
		return
	}
	conn, err := (&net.Dialer{Timeout: 10 * time.Second}).Dial("tcp", net.JoinHostPort(to.Host, itoa(int(to.Port))))
	if err != nil {
		_ = c.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	defer conn.Close()
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	go ssh.DiscardRequests(requests)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, err := io.Copy(conn, channel)
		if tcp, ok := conn.(*net.TCPConn); ok && err == nil {
			_ = tcp.CloseWrite() // the other side may still have something to say
			return
		}
		_ = conn.Close()
	}()
	_, err = io.Copy(channel, conn)
	_ = channel.CloseWrite()
	if err == nil {
		<-sent
	}
}
