package handlers

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"

	"github.com/gin-gonic/gin"

	"oversell/api"
	"oversell/locks"
	"oversell/stock"
)

// outcomes has ErrLost before ErrCancelled: a request that loses its lock is often cancelled, too.
var outcomes = []struct { //nolint:gochecknoglobals // a table, never written
	err     error
	status  int
	outcome api.Outcome
	zh      string
}{
	{stock.ErrUnknownProduct, http.StatusNotFound, api.UnknownProduct, "没有这个商品"},
	{stock.ErrSoldOut, http.StatusConflict, api.SoldOut, "已售完"},
	{stock.ErrFenced, http.StatusConflict, api.Fenced, "这一行已登记更新的栅栏令牌"},
	{stock.ErrUnknownCoupon, http.StatusNotFound, api.UnknownCoupon, "没有这种优惠券"},
	{stock.ErrNotOpen, http.StatusForbidden, api.NotOpen, "活动还没有开始"},
	{stock.ErrOver, http.StatusGone, api.Over, "活动已经结束"},
	{stock.ErrAlreadyTaken, http.StatusConflict, api.AlreadyTaken, "这个用户已经领过"},
	{errRunning, http.StatusTooManyRequests, api.Running, "这个用户的上一个请求还在处理"},
	{stock.ErrUnknownShow, http.StatusNotFound, api.UnknownShow, "没有这场演出"},
	{stock.ErrUnknownOrder, http.StatusNotFound, api.UnknownOrder, "没有这个订单"},
	{stock.ErrWrongAmount, http.StatusUnprocessableEntity, api.WrongAmount, "金额与订单不符"},
	{stock.ErrKeyReused, http.StatusUnprocessableEntity, api.KeyReused, "这个幂等键已用于另一个请求"},
	{locks.ErrLost, http.StatusServiceUnavailable, api.Lost, "锁已丢失，没有写入"},
	{stock.ErrUnavailable, http.StatusServiceUnavailable, api.Unavailable, "后端不可用，库存没有扣减"},
	{locks.ErrNotAcquired, http.StatusServiceUnavailable, api.NotAcquired, "在等待时间内没有拿到锁"},
	{locks.ErrUpgrade, http.StatusConflict, api.Upgrade, "持有读锁时不能升级为写锁"},
	{locks.ErrFull, http.StatusInsufficientStorage, api.Full, "名称数量已达上限"},
	{locks.ErrMismatch, http.StatusConflict, api.Mismatch, "这个名称已用于另一种大小"},
	{stock.ErrConflict, http.StatusServiceUnavailable, api.Conflict, "与其他事务冲突，没有写入"},
	{stock.ErrCancelled, http.StatusServiceUnavailable, api.Cancelled, "请求在写入之前被取消"},
}

// unknownZH is the Chinese text for an error that is not in outcomes.
const unknownZH = "结果未知，库存可能已经扣减"

// refusal is an error with its answer in English, and the texts of the answer in Chinese.
type refusal struct {
	api.Problem
	detailZH, allowedZH string
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

// If err is not in outcomes, describe says "unknown": pieces may have been taken from the stock.
func describe(err error) *refusal {
	if complete := (*refusal)(nil); errors.As(err, &complete) {
		return complete
	}
	status, outcome, zh := http.StatusInternalServerError, api.Unknown, unknownZH
	for _, o := range outcomes {
		if errors.Is(err, o.err) {
			status, outcome, zh = o.status, o.outcome, o.zh
			break
		}
	}
	r := refuse(status, outcome, "%[1]v", "%[2]s（%[1]v）", err, zh)
	var down *stock.Unavailable
	if errors.As(err, &down) {
		r.Backend = down.Backend
	}
	return r
}

// problem answers in English or, if the request prefers it, in Chinese.
func (s *Service) problem(c *gin.Context, err error) {
	r := describe(err)
	p := r.Problem
	p.Replica, p.Title = s.Replica, http.StatusText(p.Status)
	lang := requestLanguage(c)
	if lang == "zh" {
		p.Title, p.Detail, p.Allowed = titlesZH[p.Status], r.detailZH, r.allowedZH
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
	page := fmt.Sprintf(`<!doctype html><html lang="%s"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>%d</title><h1>%d</h1><p>%s</p><p><a href="/">%s</a></p></html>`,
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
	http.StatusServiceUnavailable:    "服务不可用",
	http.StatusInsufficientStorage:   "存储空间不足",
}

// written is the result of a function that has already sent the response.
type written struct{}

func (s *Service) answer(work func(*gin.Context) (any, error)) gin.HandlerFunc {
	return func(c *gin.Context) {
		answer, err := work(c)
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
