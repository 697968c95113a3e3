//! The locks of rslock on one Redis, or on the servers of REDLOCK_URLS with the argument 5, and the
//! protocol of docs/adapter.md. The holder renews its lock only by calls of extend.

use rslock::{Lock, LockError, LockManager};
use serde_json::{Value, json};
use std::{collections::HashMap, env, process, sync::Arc, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, BufReader, stdin},
    sync::Mutex,
    time::Instant,
};

/// An acquire that waits for its lock, or holds it.
#[derive(Default)]
struct Use {
    lock: Option<Lock>,
    cancelled: bool,
}

struct Adapter {
    backend: &'static str,
    servers: Vec<redis::Client>,
    locks: LockManager,
    lease: u64,                     // in milliseconds
    uses: Mutex<HashMap<u64, Use>>, // by the id of the acquire
}

impl Adapter {
    async fn answer(&self, r: &Value) -> Result<&'static str, String> {
        let key = r["key"].as_str().unwrap_or_default();
        match r["do"].as_str() {
            Some("acquire") => self.acquire(r, key).await,
            Some("release") => {
                let held = self.uses.lock().await.remove(&r["of"].as_u64().unwrap_or_default());
                let Some(lock) = held.and_then(|held| held.lock) else {
                    return Ok("not_held");
                };
                lock.release().await; // it has no result
                Ok("released")
            }
            _ => self.clear(key).await.map(|()| "done").map_err(|why| why.to_string()),
        }
    }

    /// Calls lock until it succeeds or the wait is over: a call cannot be cancelled, and has three tries.
    async fn acquire(&self, r: &Value, key: &str) -> Result<&'static str, String> {
        let id = r["id"].as_u64().unwrap_or_default();
        let ttl = Duration::from_millis(r["lease_ms"].as_u64().unwrap_or(self.lease));
        let end = Instant::now() + Duration::from_millis(r["wait_ms"].as_u64().unwrap_or_default());
        let (mut locks, waits) = (self.locks.clone(), end > Instant::now());
        if !waits {
            locks.set_retry(1, Duration::from_millis(200));
        }
        loop {
            let result = locks.lock(key, ttl).await;
            let mut uses = self.uses.lock().await;
            match result {
                Ok(lock) => {
                    uses.entry(id).or_default().lock = Some(lock);
                    return Ok("granted");
                }
                Err(LockError::Unavailable | LockError::TtlExceeded) => {}
                Err(why) => return Err(why.to_string()),
            }
            if Instant::now() >= end || uses[&id].cancelled {
                return Ok("not_acquired");
            }
        }
    }

    async fn clear(&self, key: &str) -> redis::RedisResult<()> {
        for server in &self.servers {
            let mut connection = server.get_multiplexed_async_connection().await?;
            redis::cmd("DEL").arg(key).exec_async(&mut connection).await?;
        }
        Ok(())
    }

    async fn say(&self, r: Value) {
        let (id, acquires) = (&r["id"], r["do"] == "acquire");
        let line = match self.answer(&r).await {
            Ok(answer) => json!({"id": id, "answer": answer}),
            Err(why) => json!({"id": id, "answer": "error", "backend": self.backend, "why": why}),
        };
        if acquires && line["answer"] != "granted" {
            self.uses.lock().await.remove(&id.as_u64().unwrap_or_default());
        }
        println!("{line}"); // it locks and flushes the standard output
    }
}

#[tokio::main]
async fn main() {
    let five = env::args().nth(1).as_deref() == Some("5");
    let urls = env::var(if five { "REDLOCK_URLS" } else { "REDIS_URL" }).unwrap_or("redis://127.0.0.1:6379/0".into());
    let servers: Vec<_> = urls
        .split(',')
        .map(|url| redis::Client::open(url).expect("a URL of Redis"))
        .collect();
    let adapter = Arc::new(Adapter {
        backend: if five { "redlock" } else { "redis" },
        locks: LockManager::from_clients(servers.clone()),
        servers,
        lease: env::var("LEASE_MS").ok().and_then(|ms| ms.parse().ok()).unwrap_or(10_000),
        uses: Mutex::default(),
    });
    println!(
        "{}",
        json!({
            "hello": 1, "library": "rslock", "version": "0.10.0", "language": "Rust", "document": "https://docs.rs/rslock/0.10.0",
            "backends": [adapter.backend], "capabilities": {"lease": true, "lease_per_request": true, "release_result": false},
        })
    );
    let mut lines = BufReader::new(stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(r) = serde_json::from_str::<Value>(&line) else {
            eprintln!("not JSON: {line}");
            process::exit(1);
        };
        if r["do"] == "cancel" {
            if let Some(waiting) = adapter.uses.lock().await.get_mut(&r["of"].as_u64().unwrap_or_default()) {
                waiting.cancelled = true;
            }
            continue;
        }
        if r["do"] == "acquire" {
            adapter
                .uses
                .lock()
                .await
                .insert(r["id"].as_u64().unwrap_or_default(), Use::default());
        }
        let adapter = adapter.clone();
        tokio::spawn(async move { adapter.say(r).await });
    }
    process::exit(0);
}
