package rig

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

// MySQLVersion returns the version of the rig's MySQL or MariaDB, such as 9.7.0 or
// 11.8.3-MariaDB. Without such a server it is empty.
func (r *Rig) MySQLVersion(ctx context.Context) (version string, err error) {
	if r.addrs.MySQL == "" {
		return "", nil
	}
	db, err := sql.Open("mysql", r.addrs.MySQL)
	if err != nil {
		return "", fmt.Errorf("rig: %w", err)
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return "", fmt.Errorf("rig: the version of MySQL: %w", err)
	}
	return strings.TrimSuffix(version, "-log"), nil // which says that it keeps a binary log
}
