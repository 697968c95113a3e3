-- +goose Up
CREATE TABLE IF NOT EXISTS db_lock_cleaned (
  id          bigint       NOT NULL AUTO_INCREMENT,
  lock_name   varchar(191) NOT NULL COMMENT 'what is locked, for as long as the row is there',
  class_name  varchar(100)     NULL COMMENT 'the code that holds it',
  method_name varchar(50)      NULL,
  server_name varchar(191)     NULL COMMENT 'the machine that holds it',
  thread_name varchar(191)     NULL COMMENT 'the request that holds it, and a token of this grant',
  create_time timestamp(6)     NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP(6) COMMENT 'of the grant, by this server''s clock',
  `desc`      varchar(100)     NULL,
  max_age     bigint       NOT NULL COMMENT 'in microseconds; a job deletes an older row',
  PRIMARY KEY (id),
  UNIQUE KEY lock_name (lock_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE db_lock_cleaned;
