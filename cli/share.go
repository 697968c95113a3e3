package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/mdp/qrterminal/v3"
)

// sharePage listens for the phones of a class, and returns the link for them. Without an address, it
// returns no listener: then only this machine can reach the lab.
func sharePage(ctx context.Context, address string) (listener net.Listener, link string, err error) {
	if address == "" {
		return nil, "", nil
	}
	listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, "", usage("--share %s: %w; give an address of this machine, such as --share 192.168.0.2:8300", address, err)
	}
	host, port, _ := net.SplitHostPort(listener.Addr().String()) // of a listener, so it is valid
	if ip := net.ParseIP(host); ip.IsUnspecified() {
		host = ownAddress()
	}
	return listener, "http://" + net.JoinHostPort(host, port) + "/dash/vote", nil
}

// ownAddress returns an IPv4 address of this machine in its network, or that of loopback.
func ownAddress() string {
	addresses, _ := net.InterfaceAddrs() // without an answer, the link is for this machine only
	for _, a := range addresses {
		if ip, _, err := net.ParseCIDR(a.String()); err == nil && ip.To4() != nil && !ip.IsLoopback() {
			return ip.String()
		}
	}
	return "127.0.0.1"
}

// printLink prints the link for phones, and its QR code.
func printLink(out io.Writer, link string) error {
	var code strings.Builder
	qrterminal.GenerateHalfBlock(link, qrterminal.M, &code)
	_, err := fmt.Fprintf(out, "\nPhones of the class can look and vote:\n  %s\n%s", link, code.String())
	return err
}
