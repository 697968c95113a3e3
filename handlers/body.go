package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"oversell/api"

	"github.com/gin-gonic/gin"
)

const (
	// maxBody and bodyTime bound what a client sends after its header: parameters are small.
	maxBody  = 16 << 10
	bodyTime = 5 * time.Second

	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

// readBody reads the body before the handler runs, and refuses one that is too long, too
// slow, or of a type that no handler reads: ignored, it would sell with the defaults.
//
// DANGER: the server's ReadTimeout is no substitute. It also cancels requests that have
// arrived and wait for a lock.
func (s *Service) readBody(c *gin.Context) {
	if c.Request.Body == nil || c.Request.Body == http.NoBody {
		return
	}
	control := http.NewResponseController(c.Writer)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // a recorder in a test has none
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	if err != nil {
		c.Header("Connection", "close") // what is left of the body is no request
		refusal := api.Problem{Status: http.StatusRequestTimeout, Outcome: api.BadRequest, Detail: fmt.Sprintf("the body did not arrive within %v", bodyTime)}
		switch long := (*http.MaxBytesError)(nil); {
		case errors.As(err, &long):
			refusal.Status, refusal.Detail = http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is longer than %d bytes", maxBody)
		case !errors.Is(err, os.ErrDeadlineExceeded):
			refusal.Status, refusal.Detail = http.StatusBadRequest, "the body could not be read: "+short(err.Error())
		}
		s.problem(c, refusal)
		return
	}
	_ = control.SetReadDeadline(time.Time{})
	c.Request.Body = io.NopCloser(bytes.NewReader(body))
	media, _, _ := mime.ParseMediaType(c.GetHeader("Content-Type"))
	if len(body) > 0 && media != formType && media != jsonType {
		s.problem(c, api.Problem{
			Status: http.StatusUnsupportedMediaType, Outcome: api.BadRequest, Parameter: "Content-Type",
			Detail:  "Content-Type " + short(c.GetHeader("Content-Type")) + " is not read here, and nothing was done: send the parameters in the query, as a form or as a JSON object",
			Allowed: formType + " or " + jsonType,
		})
	}
}

// bodyParams reads the parameters in a body that readBody has let pass.
func bodyParams(r *http.Request) (url.Values, error) {
	if r.Body == nil {
		return url.Values{}, nil
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); media == jsonType && len(text) > 0 {
		return jsonParams(text)
	}
	return url.ParseQuery(string(text))
}

// jsonParams reads one JSON object of strings, numbers and booleans. A name that stands
// twice has two values, as in a query.
func jsonParams(text []byte) (url.Values, error) {
	in, values := json.NewDecoder(bytes.NewReader(text)), url.Values{}
	in.UseNumber()
	if begin, err := in.Token(); err != nil || begin != json.Delim('{') {
		return nil, errors.New("no JSON object")
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, err
		}
		key, _ := name.(string) // the decoder allows no other
		value, err := in.Token()
		if err != nil {
			return nil, err
		}
		switch v := value.(type) {
		case string:
			values.Add(key, v)
		case json.Number:
			values.Add(key, v.String())
		case bool:
			values.Add(key, strconv.FormatBool(v))
		default:
			return nil, fmt.Errorf("%s is no string, number or boolean", key)
		}
	}
	if _, err := in.Token(); err != nil {
		return nil, err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON object")
	}
	return values, nil
}
