package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"oversell/api"
	"oversell/lab/course"
	"oversell/lab/rig"
)

// courseCommand records the lessons: make course.
func courseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "course [lesson...]",
		Short: "Run the commands of the lessons in docs/course, and write their results into the lessons",
		RunE: func(cmd *cobra.Command, names []string) error {
			return recordCourse(cmd.Context(), names, cmd.ErrOrStderr())
		},
	}
}

func recordCourse(ctx context.Context, names []string, progress io.Writer) (err error) {
	lab, err := startLab(ctx, func(*rig.Config) {})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	recorder, err := recorderFor(ctx, lab, progress)
	if err != nil {
		return err
	}
	for _, lang := range course.Languages() {
		lessons, err := course.Lessons(os.DirFS("docs"), lang)
		if err != nil {
			return err
		}
		recorder.Lang = lang
		for _, l := range lessons {
			if len(names) > 0 && !slices.Contains(names, l.Name) {
				continue
			}
			_, _ = fmt.Fprintf(progress, "%s %s\n", lang, l.Name)
			text, err := recorder.Record(ctx, l)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.FromSlash("docs/"+course.File(l.Name, lang)), []byte(text), 0o644); err != nil { //nolint:gosec // a document
				return err
			}
		}
	}
	return nil
}

func recorderFor(ctx context.Context, lab *rig.Rig, progress io.Writer) (r course.Recorder, err error) {
	addrs := lab.Addresses()
	r.Program, err = filepath.Abs(program)
	if err != nil {
		return r, err
	}
	r.Target, r.Replicas, r.Token, r.Output, r.Progress = addrs.Target, addrs.Replicas, addrs.Token, io.Discard, progress
	client := api.Client{Base: addrs.Target, Token: addrs.Token, HTTP: api.Direct()}
	r.Refill = func(ctx context.Context) error {
		return client.Call(ctx, http.MethodPut, "/stock/1?count=5000", nil, nil)
	}
	r.Cards, err = course.ReadCards(ctx, client)
	return r, err
}
