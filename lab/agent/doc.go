// Package agent sends one load from several machines.
//
// An Agent waits on each machine for a coordinator. The coordinator gives each agent its share of a
// plan, starts all agents at the same time, and joins their records to one history.
//
// They exchange lines of JSON over one TCP connection, which lasts for all runs of a command. Both
// sides send a line each second. A side that receives none for 10 s ends the connection, and an
// agent without its coordinator ends the run.
//
// An agent must not become a tool to attack other servers. It sends requests only to the target
// with which it was started, only for a coordinator with its token, and only for a limited time.
package agent
