package dash

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"oversell/api"
	"oversell/dash/hub"
	"oversell/lab/history"
	"oversell/lab/measure"
	"oversell/view/report"
)

const maxResults = 60

type kept struct {
	ID      int
	Result  measure.Result
	history history.History
}

type row struct {
	kept
	Share float64 // of the highest throughput, in per cent
	Lost  float64 // of the highest number of lost updates, in per cent
	Cells []resultCell
}

// resultCell is a cell of the table of results.
type resultCell struct {
	Column string
	Text   api.Text
	Order  string // by which the table is sorted
}

func cellsOf(r measure.Result) (cells []resultCell) {
	for _, c := range report.PageColumns() {
		text, order := c.PageCell(r)
		cells = append(cells, resultCell{c.ID, text, order})
	}
	return cells
}

type resultsView struct {
	Columns []report.Column
	Rows    []row
	Error   *api.Text // of the last run, which may have left no result
	Advice  api.Text  // from the results of the last run
}

// table returns what the table of results shows, the newest first. The hub's mutex must be locked.
func (r *runs) table() resultsView {
	best, most := 1e-9, 1
	for _, k := range r.results {
		best, most = max(best, k.Result.Rate()), max(most, k.Result.LostUpdates)
	}
	v := resultsView{Columns: report.PageColumns(), Error: r.live.Error}
	for _, k := range slices.Backward(r.results) {
		lost := max(0, float64(k.Result.LostUpdates))
		v.Rows = append(v.Rows, row{k, 100 * k.Result.Rate() / best, 100 * lost / float64(most), cellsOf(k.Result)})
	}
	var last []measure.Result
	for _, k := range r.results[max(0, len(r.results)-r.live.ended):] {
		last = append(last, k.Result)
	}
	if len(last) > 1 && !r.live.Running {
		v.Advice = report.Advice(last)
	}
	return v
}

func (r *runs) forget(context.Context, *http.Request) error {
	r.s.hub.Send("run", func() []hub.Message { r.results, r.live.ended = nil, 0; return r.all() })
	return nil
}

// download sends the result whose number is the file's name, or all results if this name is all.
func (r *runs) download(w http.ResponseWriter, req *http.Request) {
	name, kind, _ := strings.Cut(req.PathValue("file"), ".")
	var results []measure.Result
	var histories []history.History
	r.s.hub.Do(func() {
		for _, k := range r.results {
			if name == "all" || strconv.Itoa(k.ID) == name {
				results, histories = append(results, k.Result), append(histories, k.history)
			}
		}
	})
	types := map[string]string{"json": "application/json", "csv": "text/csv", "html": "text/html; charset=utf-8"}
	if types[kind] == "" || len(results) == 0 {
		r.s.showProblem(w, req, reject(http.StatusNotFound, "This file does not exist. There are .json, .csv and .html files of the results that are still kept.",
			"没有这个文件。只有仍保留的结果才有 .json、.csv 和 .html 文件。"))
		return
	}
	w.Header().Set("Content-Type", types[kind])
	w.Header().Set("Content-Disposition", `attachment; filename="oversell-`+name+"."+kind+`"`)
	var err error
	switch kind {
	case "json":
		err = report.JSON(w, results)
	case "csv":
		err = report.JTL(w, histories)
	case "html":
		// The downloaded page contains its own style, which the policy of the other pages forbids.
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		err = report.HTML(w, results)
	}
	if err != nil {
		panic(http.ErrAbortHandler) // otherwise the browser would keep an incomplete file
	}
}
