package handlers

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"
)

// rowParams are those of a request about the row whose id is in its path, such as a
// coupon or an order.
func rowParams(c *gin.Context, known ...string) (p *params, id int64) {
	p = newParams(c.Request, known)
	id = p.whole("id", c.Param("id"), 1, maxID)
	return p, id
}

// row answers with what read finds under the id in the path.
func row[T any](s *Service, read func(context.Context, int64) (T, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		p, id := rowParams(c)
		if p.err != nil {
			s.badRequest(c, p.err)
			return
		}
		answerRow(s, c, id, read)
	}
}

func answerRow[T any](s *Service, c *gin.Context, id int64, read func(context.Context, int64) (T, error)) {
	found, err := read(c.Request.Context(), id)
	if err != nil {
		s.problem(c, describe(err))
		return
	}
	c.JSON(http.StatusOK, found)
}
