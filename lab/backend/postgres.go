package backend

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
)

// serverVersion is the parameter that PostgreSQL reports at the begin of a session:
// https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-ASYNC
var serverVersion = regexp.MustCompile(`server_version\x00([^\x00]+)\x00`)

// PostgresVersion returns the version of the PostgreSQL at the URL, which asks for the password in clear text.
func PostgresVersion(ctx context.Context, at string) (string, error) {
	u, err := url.Parse(at)
	if err != nil {
		return "", err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	begin := "user\x00" + u.User.Username() + "\x00database\x00" + strings.TrimPrefix(u.Path, "/") + "\x00\x00"
	head := binary.BigEndian.AppendUint32(nil, uint32(len(begin)+8)) //nolint:gosec // short
	head = binary.BigEndian.AppendUint32(head, 3<<16)                // the version of the protocol
	password, _ := u.User.Password()
	head = append(head, begin...)
	// The password waits until the server asks for it.
	head = append(head, 'p')
	head = binary.BigEndian.AppendUint32(head, uint32(len(password)+5)) //nolint:gosec // short
	if _, err := conn.Write(append(head, password+"\x00"...)); err != nil {
		return "", err
	}
	var answer []byte
	for {
		part := make([]byte, 4096)
		n, err := conn.Read(part)
		answer = append(answer, part[:n]...)
		if found := serverVersion.FindSubmatch(answer); found != nil {
			return string(found[1]), nil
		}
		if err != nil {
			return "", fmt.Errorf("it answered %q: %w", answer, err) // such as an error while it starts
		}
	}
}
