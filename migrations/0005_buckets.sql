-- +goose Up
CREATE TABLE IF NOT EXISTS db_buckets (
  product bigint NOT NULL COMMENT 'the row of db_stock that the pieces were taken from',
  bucket  int    NOT NULL COMMENT 'from 0',
  count   int    NOT NULL COMMENT 'pieces in it',
  PRIMARY KEY (product, bucket)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- +goose Down
DROP TABLE db_buckets;
