-- +goose Up
CREATE TABLE IF NOT EXISTS db_reservations (
  id         bigint      NOT NULL AUTO_INCREMENT,
  product    bigint      NOT NULL COMMENT 'the row of db_stock that the pieces were taken from',
  qty        int         NOT NULL COMMENT 'pieces set aside, neither for sale nor sold',
  expires_at datetime(6) NOT NULL COMMENT 'UTC, by this server''s clock; from then on they are for sale again',
  PRIMARY KEY (id),
  KEY expiry (product, expires_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- +goose Down
DROP TABLE db_reservations;
