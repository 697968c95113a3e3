{{- /* Installers create root@localhost, and some root@127.0.0.1, without a password. Without name resolution
these are two users. The second one gets in by TCP, and a student may want its name, which the tutorial has. */ -}}
CREATE DATABASE IF NOT EXISTS oversell CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;
ALTER USER 'root'@'localhost' IDENTIFIED BY '{{.Admin}}';
DROP USER IF EXISTS 'root'@'127.0.0.1';
CREATE USER IF NOT EXISTS 'oversell_admin'@'127.0.0.1' IDENTIFIED BY '{{.Admin}}';
GRANT ALL PRIVILEGES ON *.* TO 'oversell_admin'@'127.0.0.1' WITH GRANT OPTION;
CREATE USER IF NOT EXISTS '{{.User}}'@'127.0.0.1' IDENTIFIED BY '{{.Password}}';
GRANT ALL PRIVILEGES ON oversell.* TO '{{.User}}'@'127.0.0.1';
GRANT ALL PRIVILEGES ON `oversell\_%`.* TO '{{.User}}'@'127.0.0.1';
GRANT ALL PRIVILEGES ON `test%`.* TO '{{.User}}'@'127.0.0.1';
GRANT PROCESS ON *.* TO '{{.User}}'@'127.0.0.1';
