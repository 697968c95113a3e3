-- +goose Up
CREATE TABLE IF NOT EXISTS db_units (
  product bigint NOT NULL COMMENT 'the row of db_stock that the piece was taken from',
  id      bigint NOT NULL COMMENT 'one piece, still to be sold; drawn at random',
  PRIMARY KEY (product, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- +goose Down
DROP TABLE db_units;
