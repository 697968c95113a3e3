-- +goose Up
CREATE TABLE IF NOT EXISTS db_redis_stock (
  product bigint NOT NULL COMMENT 'id in db_stock',
  loads   bigint NOT NULL DEFAULT 0 COMMENT 'how often its count was brought to Redis; it never falls',
  carried bigint NOT NULL DEFAULT 0 COMMENT 'the last sale of that load which has left the row as well',
  PRIMARY KEY (product)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- +goose Down
DROP TABLE db_redis_stock;
