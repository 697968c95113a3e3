package mysqllock

import "oversell/api"

// staysConnected is the flaw of each lock that belongs to a connection, and is held while its holder works.
func staysConnected() api.Break {
	return api.Break{Hazard: api.HostDeath, Why: api.Text{
		EN: "If the holder's machine dies, its connection stays open at the server, and keeps the lock. Only the server's TCP keep-alive or wait_timeout ends it: by default, after hours.",
		ZH: "持锁者的机器掉电后，它的连接在服务器上仍然打开，锁也就一直占着，直到服务器的 TCP keep-alive 或 wait_timeout 把连接断开；默认要几个小时。",
	}}
}
