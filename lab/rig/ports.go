package rig

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
)

// The rig's ports are above those of well-known services, and below the ports that the system gives
// to outgoing connections (from 32768 on Linux, from 49152 on macOS).
const firstPort, lastPort = 20000, 31999

const loopback = "127.0.0.1"

// ports reserves TCP ports of the loopback address. Another rig may take a free port before the
// server binds it, and a stopped server's port looks free. So a rig holds the UDP port of the same
// number. No server uses UDP, binding is atomic, and the kernel releases a dead program's port.
type ports struct{ held []net.PacketConn }

// take reserves the preferred port if it is free, else any free port. 0 means no preference.
func (p *ports) take(preferred int) (int, error) {
	if preferred > 0 && p.reserve(preferred) == nil {
		return preferred, nil
	}
	// A random start keeps rigs that start at the same time from trying the same ports.
	n := lastPort - firstPort + 1
	start := rand.IntN(n) //nolint:gosec // not a secret
	for i := range n {
		port := firstPort + (start+i)%n
		switch err := p.reserve(port); {
		case err == nil:
			return port, nil
		case errors.Is(err, syscall.EMFILE):
			return 0, errors.New("rig: the limit of open files is too low for a lab: raise it, with ulimit -n 1024")
		}
	}
	return 0, fmt.Errorf("rig: no free port from %d to %d", firstPort, lastPort)
}

// reserve holds port if no rig holds it and no server listens on it.
func (p *ports) reserve(port int) error {
	udp, err := net.ListenPacket("udp4", hostPort(port)) //nolint:noctx // binding does not block
	if err != nil {
		return err
	}
	tcp, err := net.Listen("tcp4", hostPort(port)) //nolint:noctx // binding does not block
	if err != nil {
		_ = udp.Close()
		return err
	}
	_ = tcp.Close()
	p.held = append(p.held, udp)
	return nil
}

// userOf names the program that has a port, such as "mysqld (process 812)". A user can see only his own programs.
func userOf(port int) string {
	var sockets []string                                   // as the links in /proc/PID/fd name them
	for _, table := range []string{"tcp", "tcp6", "udp"} { // a lab holds UDP ports: see ports
		text, _ := os.ReadFile("/proc/net/" + table) //nolint:gosec // one of the three
		for line := range strings.Lines(string(text)) {
			const local, state, inode, connected = 1, 3, 9, "01"
			fields := strings.Fields(line)
			if len(fields) > inode && strings.HasSuffix(fields[local], fmt.Sprintf(":%04X", port)) && fields[state] != connected {
				sockets = append(sockets, "socket:["+fields[inode]+"]")
			}
		}
	}
	all, err := procfs.AllProcs()
	if err != nil { // only Linux has it
		return fmt.Sprintf("another program (lsof -i :%d names it)", port)
	}
	for _, p := range all {
		files, _ := p.FileDescriptorTargets() // an error means that it belongs to another user, or has ended
		if slices.ContainsFunc(files, func(file string) bool { return slices.Contains(sockets, file) }) {
			name, _ := p.Comm()
			return fmt.Sprintf("%s (process %d)", name, p.PID)
		}
	}
	return fmt.Sprintf("a program of another user (sudo ss -ltnp 'sport = :%d' names it)", port)
}

// release gives all ports back. The servers must have ended.
func (p *ports) release() {
	for _, c := range p.held {
		_ = c.Close()
	}
	p.held = nil
}

func hostPort(port int) string { return net.JoinHostPort(loopback, strconv.Itoa(port)) }
