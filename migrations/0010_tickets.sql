-- +goose Up
CREATE TABLE IF NOT EXISTS db_shows (
  id          bigint NOT NULL,
  tickets     int    NOT NULL COMMENT 'printed: numbers 1 to this',
  next_number int    NOT NULL COMMENT 'the number that is sold next, from the highest down; 0: sold out',
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- With a wrong guard, this table can have a number twice. Only the guard "unique" sets the column
-- once. The key then rejects a second row with the same value. It accepts any number of NULLs.
CREATE TABLE IF NOT EXISTS db_tickets (
  id      bigint      NOT NULL AUTO_INCREMENT,
  show_id bigint      NOT NULL COMMENT 'the row of db_shows',
  number  int         NOT NULL COMMENT 'printed on the ticket',
  sold_by varchar(64) NOT NULL COMMENT 'who sold it',
  once    int         NULL     COMMENT 'the number again, where it must not be sold twice',
  PRIMARY KEY (id),
  KEY of_show (show_id, number),
  UNIQUE KEY sold_once (show_id, once)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

INSERT IGNORE INTO db_shows (id, tickets, next_number) VALUES (1, 1000, 1000);

-- +goose Down
DROP TABLE db_tickets;
DROP TABLE db_shows;
