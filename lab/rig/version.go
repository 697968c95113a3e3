package rig

import (
	"context"
	"fmt"
	"strings"
)

// MySQLVersion returns a version such as 9.7.0 or 11.8.3-MariaDB, or "" without a MySQL server.
func (r *Rig) MySQLVersion(ctx context.Context) (string, error) {
	if r.addrs.MySQL == "" {
		return "", nil
	}
	version, err := mysqlValue(ctx, r.addrs.MySQL, "SELECT VERSION()")
	if err != nil {
		return "", fmt.Errorf("rig: the version of MySQL: %w", err)
	}
	return strings.TrimSuffix(version, "-log"), nil // a server with a binary log adds it
}
