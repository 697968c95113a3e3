package experiment

import (
	"time"

	"oversell/api"
)

func deadlock() Experiment {
	return Experiment{
		Hazard: "deadlock", Group: faultless, Applies: claimed("deadlock"),
		Title: api.Text{EN: "two requests have read, and both write", ZH: "两个请求都已读取，又都要写入"},
		Shows: api.Text{EN: "error 1213: MySQL rolls one of them back", ZH: "错误 1213：MySQL 回滚其中一个"},
		step:  "read", contenderAt: "writing", contenderParams: wait(time.Second),
		judge: func(p *participant) *finding {
			n := p.ops[holder].Retries + p.ops[contender].Retries
			if n == 0 {
				return nil
			}
			return &finding{api.Wasteful, "", api.Textf(
				"The two requests waited for each other, and MySQL rolled one of them back. Retries: %d.",
				"两个请求互相等待，MySQL 回滚了其中一个。重试 %d 次。", n)}
		},
	}
}
