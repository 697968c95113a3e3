-- +goose Up
CREATE TABLE IF NOT EXISTS db_shop (
  id char(36) NOT NULL COMMENT 'random; it marks what belongs to this database in other servers, also after a fail-over',
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
INSERT INTO db_shop (id) SELECT UUID() FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM db_shop);

-- +goose Down
DROP TABLE db_shop;
