-- +goose Up
CREATE TABLE IF NOT EXISTS db_coupons (
  id        bigint      NOT NULL,
  initial   int         NOT NULL COMMENT 'coupons given out in all, when it was last reset',
  count     int         NOT NULL COMMENT 'coupons left',
  begins_at datetime(6) NOT NULL COMMENT 'UTC, by this server''s clock',
  ends_at   datetime(6) NOT NULL COMMENT 'UTC, by this server''s clock',
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS db_coupon_orders (
  id        bigint NOT NULL COMMENT 'microseconds since 1970, or one more than the last: see db_order_ids',
  coupon    bigint NOT NULL,
  user      bigint NOT NULL,
  once      bigint     NULL COMMENT 'the user, for whom the unique key is to guard; NULL, which never collides, for the other guards',
  PRIMARY KEY (id),
  UNIQUE KEY once (coupon, once),
  KEY user (coupon, user)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS db_order_ids (
  id   int    NOT NULL,
  last bigint NOT NULL COMMENT 'the last order id given out',
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

INSERT IGNORE INTO db_order_ids (id, last) VALUES (1, 0);

-- +goose Down
DROP TABLE db_order_ids;
DROP TABLE db_coupon_orders;
DROP TABLE db_coupons;
