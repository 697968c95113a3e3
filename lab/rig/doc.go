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
// itself and answers, it hears of every process group on a pipe, and it takes
// the pipe's end, which the kernel closes with the program, as its order to kill
// the groups and to remove the folder. So there is no moment at which a folder
// exists that nobody watches over.
//
// A process dies as a group: nginx's workers, or the server that a start script
// began, go with their parent. And no program runs before the reaper knows its group:
// see gate.
//
// # Ports
//
// They come from 20000 to 31999, below the range from which Linux takes the ports
// of outgoing connections: a server that is stopped finds its port free when it
// starts again. See ports.go for how two rigs avoid each other.
//
// # Lines
//
// For experiments, each replica can have a line of its own to each backend: a proxy
// (Toxiproxy, within this program) that can be cut, reset, made to lose a reply, or led to
// another server. The plain lab has none, so nothing stands between what it measures.
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
// is the owner's alone. ZooKeeper, etcd and the shop itself have no password: a rig is for a
// machine whose users do not spoil each other's lessons.
package rig
