-- +goose Up
CREATE TABLE IF NOT EXISTS db_accounts (
  id      bigint NOT NULL,
  balance bigint NOT NULL COMMENT 'in cents',
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS db_recharges (
  id      bigint NOT NULL COMMENT 'the order',
  account bigint NOT NULL COMMENT 'whom it credits',
  amount  bigint NOT NULL COMMENT 'in cents',
  paid    bool   NOT NULL DEFAULT false COMMENT 'credited',
  version bigint NOT NULL DEFAULT 0 COMMENT 'writes of this row',
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS db_idempotency_keys (
  name     varchar(191) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'the client''s key',
  recharge bigint       NOT NULL COMMENT 'the order that it was sent for',
  amount   bigint       NOT NULL COMMENT 'and what else the request said',
  PRIMARY KEY (name),
  KEY recharge (recharge)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- +goose Down
DROP TABLE db_idempotency_keys;
DROP TABLE db_recharges;
DROP TABLE db_accounts;
