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
	maxBody  = 16 << 10
	bodyTime = 5 * time.Second

	formType = "application/x-www-form-urlencoded"
	jsonType = "application/json"
)

// readBody rejects a body that is too long, too slow, or of an unknown type. If a handler ignored
// such a body, it would sell with the default parameters.
//
// DANGER: do not set http.Server.ReadTimeout: it would also cancel requests that wait for a lock.
func (s *Service) readBody(c *gin.Context) {
	if c.Request.Body == nil || c.Request.Body == http.NoBody {
		return
	}
	control := http.NewResponseController(c.Writer)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // fails in tests, which have no deadline
	body, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	if err != nil {
		c.Header("Connection", "close") // else the unread body would be taken for the next request
		switch long := (*http.MaxBytesError)(nil); {
		case errors.As(err, &long):
			s.problem(c, refuse(http.StatusRequestEntityTooLarge, api.BadRequest, "the body is longer than %d bytes", "请求体超过 %d 字节", maxBody))
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.problem(c, refuse(http.StatusRequestTimeout, api.BadRequest, "the request's body did not arrive within %v", "请求体没有在 %v 内收完", bodyTime))
		default:
			s.problem(c, refuse(http.StatusBadRequest, api.BadRequest, "the body could not be read: %s", "请求体无法读取：%s", short(err.Error())))
		}
		return
	}
	_ = control.SetReadDeadline(time.Time{})
	c.Request.Body = io.NopCloser(bytes.NewReader(body))
	media, _, _ := mime.ParseMediaType(c.GetHeader("Content-Type"))
	if len(body) > 0 && media != formType && media != jsonType {
		r := refuse(http.StatusUnsupportedMediaType, api.BadRequest,
			"Content-Type %s is not supported, and nothing was done: send the parameters in the query, as a form or as a JSON object",
			"不支持 Content-Type %s，什么也没有做：请把参数放在查询串、表单或 JSON 对象里", short(c.GetHeader("Content-Type")))
		r.Parameter, r.Allowed, r.allowedZH = "Content-Type", formType+" or "+jsonType, formType+" 或 "+jsonType
		s.problem(c, r)
	}
}

func bodyParams(r *http.Request) (url.Values, error) {
	if r.Body == nil || r.Body == http.NoBody {
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

// jsonParams reads one flat JSON object. A repeated name gets several values, as in a query.
func jsonParams(text []byte) (url.Values, error) {
	in, values := json.NewDecoder(bytes.NewReader(text)), url.Values{}
	in.UseNumber()
	if begin, err := in.Token(); err != nil || begin != json.Delim('{') {
		return nil, errors.New("the body is not a JSON object")
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, err
		}
		key, _ := name.(string) // the decoder allows only a string here
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
			return nil, fmt.Errorf("%s is not a string, number or boolean", key)
		}
	}
	if _, err := in.Token(); err != nil {
		return nil, err
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the body has more than one JSON object")
	}
	return values, nil
}
