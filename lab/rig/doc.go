// Package rig starts and stops real servers on this machine: MySQL or MariaDB, Redis, ZooKeeper,
// etcd, PostgreSQL with pgbouncer, nginx and replicas of `oversell serve`. Each is a child process on
// a loopback port. All their files are in one scratch folder.
//
// A server is one file here, such as etcd.go, which adds it to the rig with its arguments and its probe, and
// perhaps a configuration file, of the template in the folder conf. find.go finds its program, server.go
// starts, stops and kills it.
//
// Nothing is mocked and nothing is shared with the machine: two rigs never use
// the same port or folder, and servers that run here already are left alone.
//
// # Nothing is left behind
//
// Close stops everything. A rig whose program ends in any other way (a panic, a
// signal, kill -9) is cleaned up by a second process, the reaper: this program,
// started again as `reap DIR` in a session of its own. The reaper creates the folder,
// so no folder exists without a reaper. The reaper receives every process group over a pipe.
// When the program ends, the kernel closes the pipe, and the reaper kills the groups and
// removes the folder.
//
// Each server is a process group, and the rig kills the group as a whole: nginx's workers, or the
// server that a start script began, end with their parent. No program runs before the reaper has
// the number of the program's process group: see the constant gate.
//
// # Ports
//
// Ports are from 20000 to 31999, below the range from which Linux takes the ports
// of outgoing connections. So a server that is stopped finds its port free when it
// starts again. See ports.go for how two rigs avoid each other.
//
// # Links
//
// For experiments, each replica can have a link of its own to each backend: a proxy
// (Toxiproxy, within this program) that can be cut, lose a reply, or lead to another
// server. The plain lab has no links, so that they do not affect its measurements.
//
// # Durability
//
// The data live as long as the folder, so no server waits for the disk: MySQL, ZooKeeper and etcd
// hand each commit to the kernel without fsync, and Redis persists nothing. Acknowledged writes
// survive the kill of their server, except writes to Redis, but not a power cut. Do not compare the
// throughput of a lab with that of a durable deployment, which also waits for its disks.
//
// # Trust
//
// The servers listen on loopback only, where every user of the machine can reach them, and
// run as the lab's owner. MySQL and Redis have commands that write files, so their users
// cannot write files: see secrets.go. They have passwords, as PostgreSQL has. Only the owner
// can read the folder. ZooKeeper, etcd and the service have no password: a rig is for a
// machine whose users trust each other.
package rig
