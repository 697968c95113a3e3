-- +goose Up
CREATE TABLE IF NOT EXISTS db_stock (
  id           bigint       NOT NULL AUTO_INCREMENT,
  product_code varchar(255) NOT NULL COMMENT 'product number',
  stock_code   varchar(255) NOT NULL COMMENT 'warehouse number',
  count        int          NOT NULL COMMENT 'pieces in stock',
  version      bigint       NOT NULL DEFAULT 0 COMMENT 'writes of the version strategy',
  fence        bigint       NOT NULL DEFAULT 0 COMMENT 'highest fence that a holder registered',
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

INSERT IGNORE INTO db_stock (id, product_code, stock_code, count) VALUES (1, '1001', '001', 5000);

-- +goose Down
DROP TABLE db_stock;
