package exercise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mattn/go-shellwords"
	"github.com/redis/go-redis/v9"
)

type redisSession struct {
	client *redis.Client
	conn   *redis.Conn // one connection, as MULTI and WATCH need
}

func openRedis(urls []string) (session, error) {
	if len(urls) == 0 {
		return nil, errors.New("the lab has no Redis")
	}
	options, err := redis.ParseURL(urls[0])
	if err != nil {
		return nil, errors.New("redis: the lab's address is wrong") // err contains the password
	}
	options.Protocol, options.MaxRetries = 2, -1 // as redis-cli: lists instead of maps; no repetition
	client := redis.NewClient(options)
	return &redisSession{client, client.Conn()}, nil
}

func (s *redisSession) send(ctx context.Context, statement string) reply {
	words, err := shellwords.Parse(statement)
	if err != nil || len(words) == 0 {
		return reply{fmt.Sprintf("(error) cannot read the command: %v", err), true}
	}
	args := make([]any, len(words))
	for i, word := range words {
		args[i] = word
	}
	value, err := s.conn.Do(ctx, args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return reply{"(error) " + err.Error(), true}
	}
	return reply{redisText(value), false}
}

// redisText formats a reply as redis-cli does.
func redisText(value any) string {
	switch v := value.(type) {
	case nil:
		return "(nil)"
	case int64:
		return fmt.Sprintf("(integer) %d", v)
	case error:
		return "(error) " + v.Error()
	case string:
		// The driver does not tell a status from a string. These are the status replies.
		if slices.Contains([]string{"OK", "QUEUED", "PONG"}, v) {
			return v
		}
		return strconv.Quote(v)
	case []any:
		if len(v) == 0 {
			return "(empty array)"
		}
		lines := make([]string, len(v))
		for i, element := range v {
			number := fmt.Sprintf("%d) ", i+1)
			lines[i] = number + strings.ReplaceAll(redisText(element), "\n", "\n"+strings.Repeat(" ", len(number)))
		}
		return strings.Join(lines, "\n")
	default:
		return fmt.Sprint(v)
	}
}

func (s *redisSession) events() <-chan string { return nil }

// end has the same effect with and without crash: Redis keeps all keys.
func (s *redisSession) end(bool) { _, _ = s.conn.Close(), s.client.Close() }
