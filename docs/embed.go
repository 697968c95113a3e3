// Package docs embeds the documents that the program shows: the lessons of the course, the
// recorded fault matrix, and recorded runs and steps.
package docs

import "embed"

// Course has the folder course: the lessons in English, and in zh the same lessons in Chinese.
//
//go:embed course
var Course embed.FS

// Matrix has the recorded verdicts of all hazards. Package matrix reads it.
//
//go:embed matrix.json
var Matrix []byte

// Explored has what the search of all schedules says about each strategy. make explored writes it.
//
//go:embed explored.json
var Explored []byte

// Steps has every order of the steps of two clients, as compressed JSON. Package stepper reads it.
//
//go:embed recorded/steps.json.gz
var Steps []byte

// Runs has a run of each hazard and strategy with its recording, as compressed JSON. Package
// experiment reads it.
//
//go:embed recorded/runs.json.gz
var Runs []byte
