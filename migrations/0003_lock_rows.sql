-- +goose Up
CREATE TABLE IF NOT EXISTS db_lock_naive (
  id        bigint       NOT NULL AUTO_INCREMENT,
  lock_name varchar(191) NOT NULL COMMENT 'what is locked, for as long as the row is there',
  PRIMARY KEY (id),
  UNIQUE KEY lock_name (lock_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS db_turnstile (
  lock_name varchar(191) NOT NULL COMMENT 'who joins this queue locks this row: one at a time',
  PRIMARY KEY (lock_name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS db_queue (
  id         bigint       NOT NULL AUTO_INCREMENT COMMENT 'the place in the queue, and the fence',
  lock_name  varchar(191) NOT NULL COMMENT 'what is waited for; the lowest id holds it',
  owner      varchar(191) NOT NULL COMMENT 'who waits or holds',
  expires_at datetime(6)  NOT NULL COMMENT 'UTC, by this server''s clock; from then on others may delete the row',
  PRIMARY KEY (id),
  KEY place (lock_name, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- +goose Down
DROP TABLE db_queue;
DROP TABLE db_turnstile;
DROP TABLE db_lock_naive;
