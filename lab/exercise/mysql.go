package exercise

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/go-sql-driver/mysql"

	"oversell/lab/backend"
	"oversell/view/terminal"
)

type mysqlSession struct{ db *sql.DB }

func openMySQL(dsn string) (session, error) {
	if dsn == "" {
		return nil, errors.New("the lab has no MySQL")
	}
	db, err := backend.OpenMySQL(dsn)
	if err != nil {
		return nil, err
	}
	// One connection that is never replaced, or a transaction would end without notice.
	db.SetMaxOpenConns(1)
	db.SetMaxIdleConns(1)
	return &mysqlSession{db}, nil
}

// These statements return rows. All others return a number of rows.
var returnsRows = regexp.MustCompile(`(?i)^\s*(SELECT|SHOW|EXPLAIN)\b`)

func (s *mysqlSession) send(ctx context.Context, statement string) reply {
	statement, vertical := strings.CutSuffix(statement, `\G`)
	var text string
	var err error
	if returnsRows.MatchString(statement) {
		text, err = s.query(ctx, statement, vertical)
	} else {
		text, err = s.exec(ctx, statement)
	}
	if refused := (*mysql.MySQLError)(nil); errors.As(err, &refused) {
		return reply{fmt.Sprintf("ERROR %d (%s): %s", refused.Number, refused.SQLState[:], refused.Message), true}
	}
	if err != nil {
		return reply{"ERROR: " + err.Error(), true}
	}
	return reply{text, false}
}

func (s *mysqlSession) exec(ctx context.Context, statement string) (string, error) {
	result, err := s.db.ExecContext(ctx, statement)
	if err != nil {
		return "", err
	}
	n, err := result.RowsAffected()
	if n == 1 {
		return "Query OK, 1 row affected", err
	}
	return fmt.Sprintf("Query OK, %d rows affected", n), err
}

func (s *mysqlSession) query(ctx context.Context, statement string, vertical bool) (string, error) {
	rows, err := s.db.QueryContext(ctx, statement)
	if err != nil {
		return "", err
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		return "", err
	}
	values, targets := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	var table [][]string
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return "", err
		}
		row := make([]string, len(columns))
		for i, value := range values {
			row[i] = "NULL"
			if value.Valid {
				row[i] = value.String
			}
		}
		table = append(table, row)
	}
	switch {
	case rows.Err() != nil:
		return "", rows.Err()
	case len(table) == 0:
		return "Empty set", nil
	default:
		return layOut(columns, table, vertical), nil
	}
}

// layOut prints a row for each row, or, like \G in the client, a line for each value.
func layOut(columns []string, table [][]string, vertical bool) string {
	rows := append([][]string{columns}, table...)
	if vertical {
		rows = nil
		for _, row := range table {
			for i, name := range columns {
				rows = append(rows, []string{name + ":", row[i]})
			}
		}
	}
	return strings.TrimRight(terminal.Columns(rows...), "\n")
}

func (s *mysqlSession) events() <-chan string { return nil }

// end has the same effect with and without crash: the server rolls the transaction back.
func (s *mysqlSession) end(bool) { _ = s.db.Close() }
