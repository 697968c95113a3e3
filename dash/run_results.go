package dash

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"oversell/lab/history"
	"oversell/lab/report"
)

// mostResults are kept, with their samples.
const mostResults = 60

// kept is a result that stays for comparison.
type kept struct {
	ID      int
	Result  report.Result
	history history.History
}

// row is a result as the table shows it.
type row struct {
	kept
	Share float64 // of the best throughput, in per cent
	Lost  float64 // of the most lost updates, in per cent
}

// shown are the results with the newest first. It is called in the hub's turn.
func (r *runs) shown() []row {
	best, most := 1e-9, 1
	for _, k := range r.results {
		best, most = max(best, k.Result.ThroughputPerS), max(most, k.Result.LostUpdates)
	}
	rows := make([]row, 0, len(r.results))
	for _, k := range slices.Backward(r.results) {
		rows = append(rows, row{k, 100 * k.Result.ThroughputPerS / best, 100 * max(0, float64(k.Result.LostUpdates)) / float64(most)})
	}
	return rows
}

// forget clears the table.
func (r *runs) forget(context.Context, request) error {
	r.s.hub.send("run", func() []message { r.results = nil; return r.all() })
	return nil
}

// download writes a result, or with all.json and so on all of them.
func (r *runs) download(w http.ResponseWriter, req *http.Request) {
	name, kind, _ := strings.Cut(req.PathValue("file"), ".")
	var chosen []kept
	r.s.hub.send("run", func() []message {
		for _, k := range r.results {
			if name == "all" || strconv.Itoa(k.ID) == name {
				chosen = append(chosen, k)
			}
		}
		return nil
	})
	var results []report.Result
	var histories []history.History
	for _, k := range chosen {
		results, histories = append(results, k.Result), append(histories, k.history)
	}
	var err error
	header := w.Header()
	switch {
	case len(chosen) == 0:
		r.s.sorry(w, req, http.StatusNotFound, Text{"This result is not kept any more.", "这个结果已不再保留。"})
		return
	case kind == "json":
		header.Set("Content-Type", "application/json")
		header.Set("Content-Disposition", `attachment; filename="oversell-`+name+`.json"`)
		err = report.JSON(w, results)
	case kind == "csv":
		header.Set("Content-Type", "text/csv")
		header.Set("Content-Disposition", `attachment; filename="oversell-`+name+`.csv"`)
		err = report.JTL(w, histories)
	case kind == "html":
		header.Set("Content-Type", "text/html; charset=utf-8")
		// It has its style in itself, and a policy of its own.
		header.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		header.Set("Content-Disposition", `attachment; filename="oversell-`+name+`.html"`)
		err = report.HTML(w, results)
	default:
		r.s.sorry(w, req, http.StatusNotFound, Text{"There are .json, .csv and .html.", "只有 .json、.csv 和 .html。"})
		return
	}
	if err != nil {
		panic(http.ErrAbortHandler) // half a file is none
	}
}
