package stock

import (
	"context"
	"strings"
	"sync/atomic"

	"gorm.io/gorm"
)

// Shop names a deployment, for servers that several share: by its database, which all its replicas use.
type Shop struct {
	DB        *gorm.DB
	Namespace string // tells a copy of the database from the original
	name      atomic.Pointer[string]
}

// Name returns the name, which a fail-over of the database does not change. It is empty for a nil Shop, which
// shares no server. Name asks the database only once. It returns ErrCancelled or ErrUnavailable without an answer.
func (s *Shop) Name(ctx context.Context) (name string, err error) {
	if s == nil {
		return "", nil
	}
	if known := s.name.Load(); known != nil {
		return *known, nil
	}
	err = s.DB.WithContext(ctx).Raw("SELECT CONCAT(DATABASE(), ':', id) FROM db_shop LIMIT 1").Row().Scan(&name)
	if err != nil {
		return "", NothingWritten(ctx, err)
	}
	name = strings.TrimPrefix(s.Namespace+":"+name, ":")
	s.name.Store(&name)
	return name, nil
}
