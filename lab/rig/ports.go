package rig

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
)

// Below the ephemeral range of Linux (32768) and macOS (49152), above what
// services use by habit.
const firstPort, lastPort = 20000, 31999

// loopback is where everything listens.
const loopback = "127.0.0.1"

// ports hands out TCP ports of the loopback address.
//
// A port is free for a moment only: between a look and the server's bind another
// rig may take it, and while a server is stopped its port looks free to all. So a
// rig holds the UDP port of the same number for as long as it lives. Nobody else
// uses it, binding it is atomic, and the kernel gives it back when the program
// dies: a lock among rigs that leaves no file.
type ports struct{ held []net.PacketConn }

// take reserves the preferred port if it is free, else any.
func (p *ports) take(preferred int) (int, error) {
	if preferred > 0 && p.reserve(preferred) {
		return preferred, nil
	}
	// A random start keeps rigs that begin together from trying the same ones.
	n := lastPort - firstPort + 1
	start := rand.IntN(n) //nolint:gosec // not a secret
	for i := range n {
		if port := firstPort + (start+i)%n; p.reserve(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("rig: no free port from %d to %d", firstPort, lastPort)
}

// reserve holds port if no rig holds it and no server listens on it.
func (p *ports) reserve(port int) bool {
	udp, err := net.ListenPacket("udp4", hostPort(port)) //nolint:noctx // binding does not block
	if err != nil {
		return false
	}
	tcp, err := net.Listen("tcp4", hostPort(port)) //nolint:noctx // binding does not block
	if err != nil {
		_ = udp.Close()
		return false
	}
	_ = tcp.Close()
	p.held = append(p.held, udp)
	return true
}

// release gives all ports back. The servers must be gone.
func (p *ports) release() {
	for _, c := range slices.Backward(p.held) {
		_ = c.Close()
	}
	p.held = nil
}

func hostPort(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
