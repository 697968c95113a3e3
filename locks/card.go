package locks

import "oversell/api"

// The contract's own names.
type (
	Card   = api.Card
	File   = api.File
	Text   = api.Text
	Scope  = api.Scope
	Hazard = api.Hazard
	Break  = api.Break
	Figure = api.Figure
	Step   = api.Step
	Event  = api.Event
)

const (
	ScopeNone     = api.ScopeNone
	ScopeProcess  = api.ScopeProcess
	ScopeShared   = api.ScopeShared
	Race          = api.Race
	ReplicaRace   = api.ReplicaRace
	CASStorm      = api.CASStorm
	Crash         = api.Crash
	Overrun       = api.Overrun
	Pause         = api.Pause
	Failover      = api.Failover
	MinorityLoss  = api.MinorityLoss
	ClockJump     = api.ClockJump
	SessionExpiry = api.SessionExpiry
	DeadWaiter    = api.DeadWaiter
	Cutoff        = api.Cutoff
	LostReply     = api.LostReply
	Nesting       = api.Nesting
	Herd          = api.Herd
	Polling       = api.Polling
	ForeignUnlock = api.ForeignUnlock
	EarlyRelease  = api.EarlyRelease
	Deadlock      = api.Deadlock
	WriteBehind   = api.WriteBehind
	Asked         = api.Asked
	Queued        = api.Queued
	Granted       = api.Granted
	Read          = api.Read
	Writing       = api.Writing
	Written       = api.Written
	Released      = api.Released
)
