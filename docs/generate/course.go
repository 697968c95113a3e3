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

	"oversell/api"
	"oversell/lab/course"
	"oversell/lab/rig"
)

// recordCourse records these lessons, or all: make course.
func recordCourse(ctx context.Context, names []string) (err error) {
	lab, err := startLab(ctx, func(*rig.Config) {})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lab.Close()) }()
	recorder, err := recorderFor(ctx, lab)
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
			_, _ = fmt.Fprintf(os.Stderr, "%s %s\n", lang, l.Name)
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

func recorderFor(ctx context.Context, lab *rig.Rig) (r course.Recorder, err error) {
	addrs := lab.Addresses()
	r.Program, err = filepath.Abs(program)
	if err != nil {
		return r, err
	}
	r.Target, r.Replicas, r.Token, r.Output, r.Progress = addrs.Target, addrs.Replicas, addrs.Token, io.Discard, os.Stderr
	client := api.Client{Base: addrs.Target, Token: addrs.Token, HTTP: api.Direct()}
	r.Refill = func(ctx context.Context) error {
		return client.Call(ctx, http.MethodPut, "/stock/1?count=5000", nil, nil)
	}
	r.Cards, err = course.ReadCards(ctx, client)
	return r, err
}
