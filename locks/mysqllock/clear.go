package mysqllock

import (
	"context"
	"fmt"

	"oversell/api"

	"gorm.io/gorm"
)

func clearTable(ctx context.Context, db *gorm.DB, table, key string) error {
	var product int64
	_, _ = fmt.Sscanf(key, "stock:%d", &product)
	if api.Key(product) != key {
		return nil // not the key of a product
	}
	return db.WithContext(ctx).Exec("DELETE FROM "+table+" WHERE product = ?", product).Error
}
