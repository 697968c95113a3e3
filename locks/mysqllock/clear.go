package mysqllock

import (
	"context"
	"fmt"

	"oversell/api"

	"gorm.io/gorm"
)

// clearTable deletes what the table has of the product whose key that is.
func clearTable(ctx context.Context, db *gorm.DB, table, key string) error {
	var product int64
	_, _ = fmt.Sscanf(key, "stock:%d", &product)
	if api.Key(product) != key {
		return nil // no product's: nothing to clear
	}
	return db.WithContext(ctx).Exec("DELETE FROM "+table+" WHERE product = ?", product).Error
}
