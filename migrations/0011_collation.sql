-- A table without a collation gets the server's default for utf8mb4, which differs between
-- MySQL, MariaDB and their releases. This collation compares the names and owners of locks byte
-- by byte, as Redis, ZooKeeper and etcd do.

-- +goose Up
ALTER TABLE db_stock CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
ALTER TABLE db_lock CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
ALTER TABLE db_lock_naive CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
ALTER TABLE db_turnstile CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
ALTER TABLE db_queue CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
ALTER TABLE db_tickets CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
-- Down keeps the collation: the previous one is unknown, and the older schema works with this one.
