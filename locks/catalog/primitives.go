package catalog

import (
	"fmt"

	"oversell/api"
)

// PrimitiveCards describes the synchronization primitives, in the order in which they are taught.
func PrimitiveCards() []api.Primitive {
	both, redis, zk := []string{"redis", "zookeeper"}, []string{"redis"}, []string{"zookeeper"}
	return []api.Primitive{{
		ID: "read-write", Source: "3.9.5, 4.6.3", Backends: both, Routes: []string{"/test/read", "/test/write", "/test/read/lock", "/test/read/unlock", "/test/write/lock", "/test/write/unlock"},
		Title: api.Text{EN: "Read-write lock", ZH: "读写锁"},
		Summary: api.Text{
			EN: "Many readers or one writer hold it. A writer may also read, and may then drop the write lock (a downgrade). A reader cannot become a writer.",
			ZH: "多个读者共享，或一个写者独占。写者可以再加读锁，然后释放写锁（降级）；读者不能升级为写者。",
		},
	}, {
		ID: "semaphore", Source: "3.9.6, 4.6.5", Backends: both, Routes: []string{"/test/semaphore", "/test/semaphore/acquire", "/test/semaphore/release"},
		Title: api.Text{EN: "Semaphore", ZH: "信号量"},
		Summary: api.Text{
			EN: "It has a number of permits, so it limits the number of holders. A request takes one or more permits, all or none.",
			ZH: "许可数固定，限制同时持有者的数量。一次请求可以拿一个或多个许可，要么全拿到，要么一个都不拿。",
		},
	}, {
		ID: "latch", Source: "3.9.7", Backends: redis, Routes: []string{"/test/latch", "/test/countdown"},
		Title: api.Text{EN: "Latch", ZH: "闭锁"},
		Summary: api.Text{
			EN: "Requests wait until its count is 0. Other requests count it down.",
			ZH: "请求一直等到计数归零，由其他请求倒数。",
		},
	}, {
		ID: "barrier", Source: "4.6.6", Backends: zk, Routes: []string{"/test/barrier/set", "/test/barrier/wait", "/test/barrier/remove"},
		Title: api.Text{EN: "Barrier", ZH: "屏障"},
		Summary: api.Text{
			EN: "All requests wait while its node exists. When the node is deleted, all of them continue.",
			ZH: "屏障节点存在时所有请求都等待；节点一删除，全部放行。",
		},
	}, {
		ID: "double-barrier", Source: "4.6.6", Backends: zk, Routes: []string{"/test/double-barrier/enter", "/test/double-barrier/leave"},
		Title: api.Text{EN: "Double barrier", ZH: "双重屏障"},
		Summary: api.Text{
			EN: "All members begin together and end together: nobody enters before all have come, and nobody leaves before all are done.",
			ZH: "所有成员一起开始、一起结束：人到齐才能进入，都完成才能离开。",
		},
	}, {
		ID: "counter", Source: "4.6.7", Backends: zk, Routes: []string{"/test/counter", "/test/counter/events"},
		Title: api.Text{EN: "Counter", ZH: "计数器"},
		Summary: api.Text{
			EN: "A number that all replicas share. A change compares and sets by version. If that fails too often, it takes a mutex.",
			ZH: "所有副本共享的一个数。修改时按版本号比较并设置，失败次数过多就改用互斥锁。",
		},
	}}
}

// PrimitiveSource returns the source files of a primitive, for each of its backends.
func PrimitiveSource(p api.Primitive) (files []api.File, err error) {
	for _, backend := range p.Backends {
		more, err := sourceOf(backend, p.ID)
		if err != nil {
			return nil, fmt.Errorf("primitive %s: %w", p.ID, err)
		}
		files = append(files, more...)
	}
	return files, nil
}
