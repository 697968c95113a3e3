// Package rig starts and stops real servers on this machine: MySQL or MariaDB,
// Redis, ZooKeeper, etcd, nginx and replicas of `oversell serve`, each a child process
// on a loopback port, with all its files in one scratch folder.
//
// Nothing is mocked and nothing is shared with the machine: two rigs never use
// the same port or folder, and servers that run here already are left alone.
//
// # Nothing is left behind
//
// Close stops everything. A rig whose program ends in any other way (a panic, a
// signal, kill -9) is cleaned up by a second process, the reaper: this program,
// started again as `reap DIR` in a session of its own. It creates the folder
// itself, and receives every process group over a pipe. When the pipe ends, which the
// kernel closes with the program, it kills the groups and removes the folder. So there
// is no moment at which a folder exists without a reaper.
//
// A process dies as a group: nginx's workers, or the server that a start script
// began, end with their parent. No program runs before the reaper has its group: see gate.
//
// # Ports
//
// They come from 20000 to 31999, below the range from which Linux takes the ports
// of outgoing connections: a server that is stopped finds its port free when it
// starts again. See ports.go for how two rigs avoid each other.
//
// # Links
//
// For experiments, each replica can have a link of its own to each backend: a proxy
// (Toxiproxy, within this program) that can be cut, lose a reply, or lead to another
// server. The plain lab has none, so that they do not affect what it measures.
//
// # Durability
//
// The data live as long as the folder, so no server waits for the disk: MySQL,
// ZooKeeper and etcd hand each commit to the kernel and do not fsync it, Redis persists
// nothing. What was acknowledged survives the kill of its server (Redis excepted)
// but not a power cut, which the folder does not survive either. Throughput here
// is that of locks, not of disks: do not compare it with a durable deployment.
//
// # Trust
//
// The servers listen on loopback only, where every user of the machine can reach them, and
// run as the lab's owner. So MySQL and Redis, which can be told to write a file, have
// passwords, and the users that they belong to cannot do that: see secrets.go. The folder
// is readable by the owner only. ZooKeeper, etcd and the service have no password: a rig is for a
// machine whose users trust each other.
package rig
