package handlers

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// description has the texts of an answer: the Chinese sentence for its error, and what to do.
type description struct {
	zh   string
	hint api.Text
}

// outcomes has ErrLost before ErrCancelled: a request that loses its lock is often cancelled, too.
var outcomes = []struct { //nolint:gochecknoglobals // a table, never written
	err     error
	status  int
	outcome api.Outcome
	description
}{
	{stock.ErrUnknownProduct, http.StatusNotFound, api.UnknownProduct, description{"没有这个商品", api.Text{
		EN: "Use another product, or create this one: PUT /stock/ID with count and new=true, and the lab's token.",
		ZH: "换一个商品，或用访问口令创建它：PUT /stock/ID，带上 count 和 new=true。",
	}}},
	{stock.ErrSoldOut, http.StatusConflict, api.SoldOut, description{"已售完", api.Text{
		EN: "Too little is left for this request. Buy less, or reset the stock.", ZH: "剩余数量不够。请少买一些，或重置库存。",
	}}},
	{stock.ErrFenced, http.StatusConflict, api.Fenced, description{"这一行已登记更新的栅栏号", api.Text{
		EN: "A later holder has the lock, and nothing was taken. Send a new request.", ZH: "锁已归后来的请求，库存没有扣减。请重新发送请求。",
	}}},
	{stock.ErrUnknownCoupon, http.StatusNotFound, api.UnknownCoupon, description{"没有这种优惠券", create("coupons")}},
	{stock.ErrNotOpen, http.StatusForbidden, api.NotOpen, description{"活动还没有开始", api.Text{
		EN: "GET /coupons/ID says when it begins.", ZH: "开始时间见 GET /coupons/ID。",
	}}},
	{stock.ErrOver, http.StatusGone, api.Over, description{"活动已经结束", api.Text{
		EN: "GET /coupons/ID says when it ended. Use another coupon.", ZH: "结束时间见 GET /coupons/ID。请换一种优惠券。",
	}}},
	{stock.ErrAlreadyTaken, http.StatusConflict, api.AlreadyTaken, description{"这个用户已经领过", api.Text{
		EN: "Each user gets one. Use another user.", ZH: "每个用户限领一张。请换一个用户。",
	}}},
	{errRunning, http.StatusTooManyRequests, api.Running, description{"这个用户的上一个请求还在处理", api.Text{
		EN: "Wait for its answer, then try again.", ZH: "请等它得到应答后再试。",
	}}},
	{stock.ErrUnknownShow, http.StatusNotFound, api.UnknownShow, description{"没有这场演出", create("shows")}},
	{stock.ErrUnknownOrder, http.StatusNotFound, api.UnknownOrder, description{"没有这个订单", create("orders")}},
	{stock.ErrWrongAmount, http.StatusUnprocessableEntity, api.WrongAmount, description{"金额与订单不符", api.Text{
		EN: "GET /orders/ID has the amount of the order.", ZH: "订单金额见 GET /orders/ID。",
	}}},
	{stock.ErrKeyReused, http.StatusUnprocessableEntity, api.KeyReused, description{"这个幂等键已用于另一个请求", api.Text{
		EN: "Send a new request with a new key.", ZH: "新的请求请用新的键。",
	}}},
	{locks.ErrLost, http.StatusServiceUnavailable, api.Lost, description{"锁已丢失，没有写入", api.Text{
		EN: "Nothing was taken. Try again; work that outlasts the lease needs a longer lease.", ZH: "库存没有扣减。可以重试；如果业务时间超过租期，请用更长的 lease。",
	}}},
	{stock.ErrUnavailable, http.StatusServiceUnavailable, api.Unavailable, description{"后端不可用，库存没有扣减", api.Text{
		EN: "Check the backends with GET /readyz, then try again.", ZH: "请用 GET /readyz 查看各后端，恢复后重试。",
	}}},
	{locks.ErrNotAcquired, http.StatusServiceUnavailable, api.NotAcquired, description{"没有拿到锁", api.Text{
		EN: "Other requests held it. Try again, or allow a longer wait, such as wait=30s.", ZH: "其他请求占用着它。可以重试，或允许更长的等待，例如 wait=30s。",
	}}},
	{locks.ErrUpgrade, http.StatusConflict, api.Upgrade, description{"持有读锁时不能升级为写锁", api.Text{
		EN: "Release the read lock first. Two readers that both waited for the write lock would wait for each other for ever.",
		ZH: "请先释放读锁。两个读者如果都等写锁，会永远互相等待。",
	}}},
	{locks.ErrFull, http.StatusInsufficientStorage, api.Full, description{"名称数量已达上限", api.Text{
		EN: "Use a name that exists. A reset of the stock deletes all names.", ZH: "请用已有的名称。重置库存会删除所有名称。",
	}}},
	{locks.ErrMismatch, http.StatusConflict, api.Mismatch, description{"这个名称已用于另一种大小", api.Text{
		EN: "Use the size that it has, or another name.", ZH: "请用它已有的大小，或换一个名称。",
	}}},
	{stock.ErrConflict, http.StatusServiceUnavailable, api.Conflict, description{"与其他事务冲突，没有写入", api.Text{
		EN: "Other requests wrote first. Try again, or allow a longer wait, such as wait=30s.", ZH: "其他请求抢先写入了。可以重试，或允许更长的等待，例如 wait=30s。",
	}}},
	{stock.ErrCancelled, http.StatusServiceUnavailable, api.Cancelled, description{"请求在写入之前被取消", api.Text{
		EN: "Nothing was taken. Send the request again.", ZH: "库存没有扣减。可以重新发送请求。",
	}}},
}

// create returns the hint for a missing coupon, show or order.
func create(route string) api.Text {
	return api.Textf("Check the id, or create it: PUT /%s/ID, with the lab's token.", "请检查编号，或用访问口令创建它：PUT /%s/ID。", route)
}

// unknown describes an error that is not in outcomes: pieces may have been taken from the stock.
var unknown = description{"结果未知，库存可能已经扣减", api.Text{ //nolint:gochecknoglobals // a constant
	EN: "Do not repeat it blindly: it may have sold. Read the stock first: GET /stock/ID.", ZH: "请不要直接重试：它可能已经售出。请先查看库存：GET /stock/ID。",
}}

// refusal is an error with its answer in English, and the texts of the answer in Chinese.
type refusal struct {
	api.Problem
	detailZH, hintZH, allowedZH string
}

func (r *refusal) Error() string { return r.Detail }

// refuse formats the values into en and zh, as api.Textf does.
func refuse(status int, outcome api.Outcome, en, zh string, values ...any) *refusal {
	detail := api.Textf(en, zh, values...)
	return &refusal{Problem: api.Problem{Status: status, Outcome: outcome, Detail: detail.EN}, detailZH: detail.ZH}
}

func badParameter(name, value string, allowed api.Text) *refusal {
	r := refuse(http.StatusBadRequest, api.BadRequest, "%s=%s: must be %[3]s", "%s=%s 不对，要求：%[4]s", cut(name), short(value), allowed.EN, allowed.ZH)
	r.Parameter, r.Allowed, r.allowedZH = cut(name), allowed.EN, allowed.ZH
	return r
}

// describe returns the answer to err. The outcome of an error that is not in outcomes is unknown.
func describe(err error) *refusal {
	if complete := (*refusal)(nil); errors.As(err, &complete) {
		return complete
	}
	status, outcome, sentinel, texts := http.StatusInternalServerError, api.Unknown, "", unknown
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			status, outcome, sentinel, texts = o.status, o.outcome, o.err.Error(), o.description
			break
		}
	}
	r := &refusal{Problem: api.Problem{Status: status, Outcome: outcome, Detail: err.Error(), Hint: texts.hint.EN}, hintZH: texts.hint.ZH}
	if ended := (*locks.WaitEnded)(nil); errors.As(err, &ended) && outcome == api.NotAcquired {
		sentinel, texts.zh = ended.Error(), fmt.Sprintf("%v 内没有拿到锁 %s", ended.Rounded(), ended.Key)
		if ended.Wait == 0 {
			texts.zh = "没有立即拿到锁 " + ended.Key
		}
	}
	r.detailZH = texts.inChinese(err.Error(), sentinel)
	if down := (*stock.Unavailable)(nil); errors.As(err, &down) {
		r.Backend = down.Backend
	}
	return r
}

// describe is describe with the advice about an error of a backend in the hint.
func (s *Service) describe(err error) *refusal {
	r := describe(err)
	backend := r.Backend
	if backend == "" && stock.IsContention(err) {
		backend = "mysql"
	}
	if backend != "" && s.Advise != nil {
		if advice := s.Advise(backend, err); advice != "" {
			r.Hint, r.hintZH = advice+". "+r.Hint, r.hintZH+"（"+advice+"）"
		}
	}
	return r
}

// inChinese adds the rest of an English error in brackets, without the part that zh translates.
func (d description) inChinese(err, translated string) string {
	rest := strings.Trim(strings.Replace(err, translated, "", 1), ": ")
	if rest = strings.ReplaceAll(rest, ": : ", ": "); rest == "" {
		return d.zh
	}
	return d.zh + "（" + rest + "）"
}

// problem answers in English or, if the request prefers it, in Chinese.
func (s *Service) problem(c *gin.Context, err error) {
	r := s.describe(err)
	p := r.Problem
	if p.Outcome.TookNothing() && s.abandoned(c) {
		p.Status = http.StatusBadGateway
	}
	p.Replica, p.Title = s.Replica, http.StatusText(p.Status)
	lang := requestLanguage(c)
	if lang == "zh" {
		p.Title, p.Detail, p.Hint, p.Allowed = titlesZH[p.Status], r.detailZH, r.hintZH, r.allowedZH
	}
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		c.Header("Retry-After", "1")
	}
	c.Header("Content-Type", "application/problem+json")
	c.Header("Content-Language", lang)
	c.Header("Vary", "Accept-Language")
	c.AbortWithStatusJSON(p.Status, p)
}

// page answers a browser with a page instead of JSON. The page leads to the lab's pages.
func (r *refusal) page(c *gin.Context) {
	text := api.Text{EN: r.Detail, ZH: r.detailZH}
	home := api.Text{EN: "To the pages of the lab", ZH: "回到实验室的页面"}
	lang := requestLanguage(c)
	page := fmt.Sprintf(`<!doctype html><html lang=%s><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>%d</title><h1>%d</h1><p>%s</p><p><a href="/">%s</a></p></html>`,
		lang, r.Status, r.Status, html.EscapeString(text.In(lang)), home.In(lang))
	c.Data(r.Status, "text/html; charset=utf-8", []byte(page))
}

// requestLanguage returns the language that the client prefers, en or zh.
func requestLanguage(c *gin.Context) string { return api.Language(c.GetHeader("Accept-Language")) }

// titlesZH has the Chinese titles of all statuses of problems.
var titlesZH = map[int]string{ //nolint:gochecknoglobals // a dictionary, never written
	http.StatusBadRequest:            "请求有误",
	http.StatusForbidden:             "禁止访问",
	http.StatusNotFound:              "不存在",
	http.StatusMethodNotAllowed:      "不允许这个方法",
	http.StatusRequestTimeout:        "请求超时",
	http.StatusConflict:              "冲突",
	http.StatusGone:                  "已不存在",
	http.StatusRequestEntityTooLarge: "请求体过大",
	http.StatusUnsupportedMediaType:  "不支持的内容类型",
	http.StatusUnprocessableEntity:   "内容不符合要求",
	http.StatusTooManyRequests:       "请求过多",
	http.StatusInternalServerError:   "服务器内部错误",
	http.StatusBadGateway:            "网关错误",
	http.StatusServiceUnavailable:    "服务不可用",
	http.StatusInsufficientStorage:   "存储空间不足",
}

// written is the result of a function that has already sent the response.
type written struct{}

func (s *Service) answer(work func(*gin.Context) (any, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		answer, err := work(c)
		if s.drain.began.Load() { // while the request was running
			c.Header("Connection", "close")
		}
		if err != nil {
			s.problem(c, err)
			return
		}
		if _, done := answer.(written); !done {
			c.JSON(c.Writer.Status(), answer) // with status 200, unless the function set another
		}
	}
}

func row[T any](s *Service, read func(context.Context, int64) (T, error)) gin.HandlerFunc {
	return s.answer(func(c *gin.Context) (any, error) {
		p, id := rowParams(c)
		if p.err != nil {
			return nil, p.err
		}
		return read(c.Request.Context(), id)
	})
}
