//! The connections of the process, and the end of them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Notify, watch};
use tracing::debug;

/// Connections of programs or clients.
#[derive(Default)]
pub(super) struct Connections {
    open: AtomicUsize,
    /// Whether this process takes no further connections.
    draining: watch::Sender<bool>,
    /// Tells that a connection has ended.
    ended: Notify,
}

/// An open connection.
struct Open(Arc<Connections>);

impl Connections {
    /// The next connection; `None` if this process takes no further ones.
    pub(super) async fn next<T>(&self, accept: impl Future<Output = T>) -> Option<T> {
        let mut draining = self.draining.subscribe();
        tokio::select! {
            // Draining first: a connection accepted now would soon be cut.
            biased;
            _ = draining.wait_for(|draining| *draining) => None,
            accepted = accept => Some(accepted),
        }
    }

    /// Serve a connection in the background. It counts at once, because draining may look before the
    /// task's first poll.
    pub(super) fn serve(
        self: &Arc<Self>,
        connection: impl Future<Output = io::Result<()>> + Send + 'static,
    ) {
        self.open.fetch_add(1, Ordering::Relaxed);
        let open = Open(Arc::clone(self));
        tokio::spawn(async move {
            let _open = open;
            if let Err(error) = connection.await {
                debug!(%error, "a connection");
            }
        });
    }

    /// Number of open connections.
    pub(super) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Take no further connections.
    pub(super) fn drain(&self) {
        self.draining.send_replace(true);
    }

    /// Wait until no connection is open. One task may wait.
    pub(super) async fn all_ended(&self) {
        while self.open() > 0 {
            self.ended.notified().await;
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
        // The task that waits may look before it waits.
        self.0.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_connection_is_open_before_its_task_begins() {
        let connections = Arc::new(Connections::default());
        let (end, ended) = oneshot::channel::<()>();
        connections.serve(async move { ended.await.map_err(io::Error::other) });
        connections.drain();
        assert_eq!(connections.open(), 1);
        drop(end);
        connections.all_ended().await;
        assert_eq!(connections.open(), 0);
    }

    #[tokio::test]
    async fn a_process_that_drains_takes_no_connection_that_has_arrived() {
        let connections = Connections::default();
        assert_eq!(connections.next(ready(1)).await, Some(1));
        connections.drain();
        for _ in 0..50 {
            assert_eq!(connections.next(ready(1)).await, None);
        }
    }
}
