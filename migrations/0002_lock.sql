-- +goose Up
CREATE TABLE IF NOT EXISTS db_lock (
  id         bigint       NOT NULL AUTO_INCREMENT,
  lock_name  varchar(191) NOT NULL COMMENT 'what is locked',
  owner      varchar(191)     NULL COMMENT 'who holds it; NULL: nobody',
  epoch      bigint       NOT NULL DEFAULT 0 COMMENT 'grants so far: the fence',
  expires_at datetime(6)      NULL COMMENT 'UTC, by this server''s clock',
  PRIMARY KEY (id),
  UNIQUE KEY lock_name (lock_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- +goose Down
DROP TABLE db_lock;
