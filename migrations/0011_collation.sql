-- A table that names no collation gets the server's default for utf8mb4. MySQL and MariaDB
-- differ in it, and so do their releases. Names and owners of locks are compared byte by byte
-- here, as Redis, ZooKeeper and etcd compare theirs.

-- +goose Up
ALTER TABLE db_stock CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
ALTER TABLE db_lock CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
ALTER TABLE db_lock_naive CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
ALTER TABLE db_turnstile CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
ALTER TABLE db_queue CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
ALTER TABLE db_tickets CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- +goose Down
-- The collation from before is not known, and the older schema works with this one too.
