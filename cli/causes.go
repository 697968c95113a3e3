package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"

	"oversell/locks/redislock"
	"oversell/locks/zklock"
)

// cause is a reason why a backend cannot be used, and what a person can do about it.
type cause struct {
	is     func(error) bool
	advice string // {address}, {user}, {ca} and {cert} stand for the settings of the backend
}

// causes returns the reasons that explain knows. The first one that matches an error explains it, so
// the special ones come first. Many are recognized by their text, because gRPC passes on no more.
func causes() []cause {
	return []cause{
		// Certificates.
		{says("certificate has expired or is not yet valid"), "the server's certificate is expired or not yet valid: renew it, or correct the clock of this machine"},
		{says("certificate signed by unknown authority"), "the server's certificate is signed by an authority that this replica does not trust: set {ca} to the certificate of this authority"},
		{says("x509: certificate is valid for", "x509: cannot validate certificate for", "x509: certificate is not valid for any names"), "the server's certificate is for another host name: write a name of the certificate in {address}, or issue a certificate for the name in {address}"},
		{says("x509: "), "the server's certificate cannot be verified: check it, and {ca}"},
		{says("first record does not look like a TLS handshake", mysql.ErrNoTLS.Error()), "the server does not use TLS at this port: enable TLS there, or do not use it in {address}"},
		{says("tls: certificate required", "tls: bad certificate", "tls: unknown certificate", "tls: expired certificate", "handshake failure"), "the server rejected the certificate of this replica: set {cert} to a valid certificate that is signed by an authority of the server"},
		{says("require_secure_transport", "secure transport"), "the server accepts only connections with TLS: add tls=true to {address}"},

		// Users.
		{number(1045, 1698), "the server refused the user: check the user and the password in {user}, and MYSQL_PUBLIC_KEY if it is set. If the user may log in with TLS only, add tls=true to {address}"},
		{says("unexpected resp from server for caching_sha2_password", "no pem data found", "no Pem data found"), "the user's plugin, caching_sha2_password or sha256_password, needs TLS or an RSA key of the server, and there is neither: add tls=true to {address}, or let the server create its keys"},
		{says(mysql.ErrUnknownPlugin.Error()), "the user has an authentication plugin that this program does not support: give the user the plugin caching_sha2_password, or mysql_native_password"},
		{number(1044, 1142, 1227), "the user has too few rights: grant all rights on the database to the user in {user}"},
		{number(1049), "the database does not exist: create it, or correct its name in {address}"},
		{number(1130), "the server refuses connections from this host: create the user for this host"},
		{number(1040), "the server has too many connections: raise its max_connections, or lower CONNS of the replicas"},
		{number(1203), "the user has too many connections: raise max_user_connections of the server, or lower CONNS of the replicas"},
		{number(1226), "the user has reached a limit: raise the one that the error names, with ALTER USER ... WITH or in the server, or lower CONNS of the replicas"},
		{number(1129), "the server has blocked this host after many failed connections: execute FLUSH HOSTS, and raise its max_connect_errors"},
		{number(1135, 1041), "the server lacks threads or memory: raise the limits of its process, or lower its max_connections"},

		// Limits of time, and of room.
		{number(1969), "max_statement_time of the server or the user ends each wait for a lock: raise it"},
		{number(3024), "max_execution_time of the server ends each wait for a lock: raise it"},
		{number(1021, 1114), "the server has no room for data: make room on its disk, or raise innodb_data_file_path"},
		{number(1206, 1637), "the server has no room for locks or transactions: raise innodb_buffer_pool_size, or add undo tablespaces"},
		{is(zk.ErrNoAuth), "the server refused the user of {user}: the nodes belong to another user, or the password is wrong. Correct {user}, or change the ACL of the nodes"},
		{is(zk.ErrAuthFailed, zk.ErrInvalidACL), "the server refused the authentication with {user}: it must support the scheme digest"},
		{is(zklock.ErrNoChroot), "create the path at the end of {address}, for example with zkCli, or correct it"},
		{says("invalid user ID or password"), "the server refused the user of {user}: correct the user or the password"},
		{says("etcdserver: user name is empty"), "the server requires a user: set {user}"},
		{says("etcdserver: permission denied"), "the user of {user} has too few rights: grant readwrite on the prefix /oversell/etcd/"},
		{says("WRONGPASS", "invalid password"), "the server refused the user: correct the user or the password in {user}"},
		{says("NOAUTH"), "the server requires a password: add it to {user}"},
		{says("of the channels used as arguments", "permissions to access a channel"), "the user may not use the channels of the locks, so waiters must poll: extend its ACL by &*"},
		{says("NOPERM"), "the user has too few rights: extend its ACL"},

		// Servers that reject writes.
		{says("READONLY"), "the server is a replica, which rejects writes: name its master in {address}"},
		{says("OOM command not allowed"), "the server's memory is full: raise its maxmemory, or delete data"},
		{says("NOREPLICAS"), "the server rejects writes, because too few of its replicas are connected: start them, or lower min-replicas-to-write"},
		{says("MISCONF"), "the server rejects writes, because it cannot save its data: make room on its disk, and see its log"},
		{says("LOADING"), "the server is reading its data from the disk: wait"},
		{says("CLUSTERDOWN"), "the cluster rejects writes, because a part of it is down: start the missing masters"},
		{says("database space exceeded"), "the server's database is full: compact and defragment it, or raise --quota-backend-bytes, and then disarm its alarm with etcdctl alarm disarm"},
		{number(1290), "the server is read-only: name the primary in {address}, or set read_only off"},
		{number(1792), "the transaction is read-only: name the primary in {address}, or set transaction_read_only off"},
		{number(1836), "the server is read-only: name the primary in {address}, or set innodb_read_only and innodb_force_recovery off"},

		// Several servers.
		{number(1047), "this node of the Galera cluster lacks the majority or some data: start more nodes, wait, or let a proxy choose another node"},
		{says("are unreachable: redis: nil"), "the Sentinels know no master of this name: correct the name at the end of {address}"},
		{says("all sentinels specified in configuration are unreachable"), "no Sentinel answers: check that they run, the addresses in {address}, and the user in its parameter sentinel"},
		{is(redislock.ErrPartOfCluster), "some masters of the cluster are missing: start them, or let their replicas take over"},

		// The network.
		{says("no such host", "server misbehaving", "Temporary failure in name resolution", "produced zero addresses"), "a host name cannot be resolved: correct it in {address}, or check DNS"},
		{either(is(syscall.ECONNREFUSED), says("connection refused")), "nothing listens at the address: start the server, or correct {address}"},
		{either(is(syscall.EHOSTUNREACH, syscall.ENETUNREACH), says("no route to host", "network is unreachable")), "the network has no route to the address: correct {address}, or check the network"},
		{either(is(context.DeadlineExceeded), says("i/o timeout", "deadline exceeded")), "the server does not answer: check that it runs, the address in {address}, and firewalls"},
		{says("EOF", "connection reset", "invalid connection", "bad connection", "broken pipe", "connection closed"), "the server, or a proxy before it, closed the connection: check that the server is ready, that the proxy reaches it, and that the port expects TLS if and only if this replica uses TLS"},
	}
}

// settingsOf puts the names of a backend's settings into the advice of a cause.
func settingsOf(backend string) *strings.Replacer {
	names := map[string][4]string{
		"mysql":       {"MYSQL_DSN", "MYSQL_DSN", "MYSQL_CA_FILE", "MYSQL_CERT_FILE and MYSQL_KEY_FILE"},
		"mysql-reads": {"MYSQL_READS", "MYSQL_READS", "MYSQL_CA_FILE", "MYSQL_CERT_FILE and MYSQL_KEY_FILE"},
		"redis":       {"REDIS_URL", "REDIS_URL", "ca in REDIS_URL", "cert and key in REDIS_URL"},
		"redlock":     {"REDLOCK_URLS", "REDLOCK_URLS", "ca in REDLOCK_URLS", "cert and key in REDLOCK_URLS"},
		"zookeeper":   {"ZK_SERVERS", "ZK_AUTH", "ZK_CA_FILE", "ZK_CERT_FILE and ZK_KEY_FILE"},
		"etcd":        {"ETCD_ENDPOINTS", "ETCD_AUTH", "ETCD_CA_FILE", "ETCD_CERT_FILE and ETCD_KEY_FILE"},
	}[backend]
	return strings.NewReplacer("{address}", names[0], "{user}", names[1], "{ca}", names[2], "{cert}", names[3])
}

// explained is the error of a backend with what is wrong and what to do.
type explained struct {
	advice string
	err    error
}

func (e *explained) Error() string { return fmt.Sprintf("%s (%v)", e.advice, e.err) }

func (e *explained) Unwrap() error { return e.err }

// explain adds a sentence to the error of a backend: what is wrong, and what to do. An error that no
// cause matches stays as it is.
func explain(backend string, err error) error {
	if advice := advise(backend, err); advice != "" {
		return &explained{advice, err}
	}
	return err
}

// advise returns the sentence that explain adds, or "".
func advise(backend string, err error) string {
	for _, c := range causes() {
		if err != nil && c.is(err) {
			return settingsOf(backend).Replace(c.advice)
		}
	}
	return ""
}

func is(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
}

func says(parts ...string) func(error) bool {
	return func(err error) bool {
		all := err.Error()
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(all, part) })
	}
}

func number(numbers ...uint16) func(error) bool {
	return func(err error) bool {
		answer := (*mysql.MySQLError)(nil)
		return errors.As(err, &answer) && slices.Contains(numbers, answer.Number)
	}
}

func either(conditions ...func(error) bool) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(conditions, func(is func(error) bool) bool { return is(err) })
	}
}

// untilUsable repeats try until a backend can be used for the first time, and logs why it cannot be used. The pause
// between two tries grows to longest.
func untilUsable(ctx context.Context, backend string, longest time.Duration, log *slog.Logger, try func(context.Context) error) {
	last := ""
	for pause := 200 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, longest) {
		err := try(ctx)
		if err == nil && last != "" {
			log.Info("can use " + backend)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		advice := err.Error()
		if e := (*explained)(nil); errors.As(err, &e) {
			advice = e.advice // the error itself may differ each time, for it may have a port or the time
		}
		if advice != last {
			log.Warn("cannot use "+backend, "error", err)
		}
		last = advice
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}
