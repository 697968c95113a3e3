package rig

import (
	"context"
	"fmt"
	"strings"
)

// MySQLVersion returns the version of the rig's MySQL or MariaDB, such as 9.7.0 or
// 11.8.3-MariaDB. Without such a server it is empty.
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
