//! The engine and this kernel at the two ends of a TUN device, for a short time in each direction.
//! Every byte is compared. A host that does not support this skips the test and reports the reason.

#[cfg(target_os = "linux")]
fn main() {
    use std::process::exit;
    use std::time::Duration;

    use anabranch_live::tun_throughput::{Case, TunRole, measure};

    const SHORT: Duration = Duration::from_millis(100);
    /// Bytes that must pass in that time.
    const ENOUGH: u64 = 100_000;
    const LONGER: u32 = 30;

    let arguments: Vec<String> = std::env::args().collect();
    if !anabranch_live::is_inside() {
        match anabranch_live::enter(&arguments) {
            Ok(status) => exit(status.code().unwrap_or(1)),
            Err(error) => return println!("tun skipped: no network namespaces: {error}"),
        }
    }
    let needed = |name: &str| ["namespaces", "iproute2", "Multipath TCP", "TUN"].contains(&name);
    let missing: Vec<_> = anabranch_live::probe()
        .into_iter()
        .filter_map(|each| Some((each.name, each.problem?)))
        .filter(|(name, _)| needed(name))
        .collect();
    if !missing.is_empty() {
        return println!("tun skipped: {missing:?}");
    }
    anabranch_live::stop_preferring();
    let mut failed = 0;
    for role in [TunRole::Copy, TunRole::EngineReceives, TunRole::EngineSends] {
        for (mptcp, offload) in [(false, false), (false, true), (true, false), (true, true)] {
            let case = Case { role, mptcp, offload };
            // Even a busy machine sends some megabytes in 100 ms. Where other processes leave none of
            // that time, a longer measurement must reach the same rate.
            let mut figure = measure(case, SHORT);
            let mut enough = ENOUGH;
            if figure.as_ref().is_ok_and(|figure| figure.bytes <= enough) {
                figure = measure(case, LONGER * SHORT);
                enough *= u64::from(LONGER);
            }
            // Headers have at least 40 bytes, which leaves 1460 bytes of an MTU of 1500.
            let ok = figure.as_ref().is_ok_and(|figure| {
                let mean = figure.bytes / figure.frames.max(1);
                figure.bytes > enough && (mean > 1460) == offload
            });
            println!("{case:?} ... {}", if ok { "ok".to_owned() } else { format!("{figure:?}") });
            failed += i32::from(!ok);
        }
    }
    let echoed = device::echo();
    println!("a host of its own on the device ... {echoed:?}");
    failed += i32::from(echoed.is_err());
    exit(failed.min(1));
}

/// The public device: a host of `anabranch-host` in this namespace, and a Multipath TCP socket of the
/// kernel with a subflow for each of two addresses.
#[cfg(target_os = "linux")]
mod device {
    use std::io::{Error, Read, Write};
    use std::net::{Shutdown, SocketAddr};
    use std::process::Command;
    use std::sync::mpsc::{self, Receiver, Sender};
    use std::thread;
    use std::time::Duration;

    use anabranch_host::{Host, Stream};
    use anabranch_live::TunDevice;
    use anabranch_proto::config::ConnectionConfig;
    use socket2::{Domain, Protocol, Socket, Type};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::runtime::Builder;
    use tokio::task::spawn_blocking;
    use tokio::time::timeout;

    const DEVICE: &str = "echo0";
    const SETUP: &[&str] = &[
        "address add 10.99.0.1/24 dev echo0",
        "address add 10.99.1.1/24 dev echo0",
        "link set echo0 up",
        "mptcp limits set subflows 1",
        "mptcp endpoint add 10.99.1.1 dev echo0 subflow",
    ];
    const BYTES: usize = 1_000_000;
    const TIMEOUT: Duration = Duration::from_secs(20);

    /// The kernel sends and receives `BYTES` bytes over two subflows.
    pub(super) fn echo() -> Result<(), Box<dyn std::error::Error>> {
        Builder::new_current_thread().enable_all().build()?.block_on(async {
            let device = TunDevice::open(DEVICE)?;
            for command in SETUP {
                let status = Command::new("ip").args(command.split(' ')).status()?;
                assert!(status.success(), "ip {command}: {status}");
            }
            let addresses = vec!["10.99.0.2".parse()?];
            let host = Host::new(device, addresses, [7; 32], ConnectionConfig::default());
            let listener = host.listen(7)?;
            let (joined, has_joined) = mpsc::channel();
            let kernel = spawn_blocking(|| talk(has_joined));
            let served = timeout(TIMEOUT, async {
                let (stream, _) = listener.accept().await?;
                serve(stream, joined).await
            });
            served.await??;
            let echoed = timeout(TIMEOUT, kernel).await???;
            assert!(echoed.iter().eq(&pattern()), "other bytes came back");
            Ok(())
        })
    }

    /// Return what arrives, and report when there are two subflows.
    async fn serve(mut stream: Stream, joined: Sender<()>) -> std::io::Result<()> {
        let (mut buffer, mut joined) = (vec![0; 1 << 16], Some(joined));
        loop {
            let read = timeout(Duration::from_millis(10), stream.read(&mut buffer)).await;
            if stream.subflows().len() >= 2
                && let Some(joined) = joined.take()
            {
                let _ = joined.send(());
            }
            match read {
                Err(_) => {}
                Ok(Ok(0)) => return stream.shutdown().await,
                Ok(len) => stream.write_all(&buffer[..len?]).await?,
            }
        }
    }

    /// Send the pattern, and return what comes back. The kernel opens no subflow after the end of the
    /// data, so this waits for the second subflow before it closes.
    fn talk(has_joined: Receiver<()>) -> std::io::Result<Vec<u8>> {
        let mut socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP))?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        socket.connect(&SocketAddr::from(([10, 99, 0, 2], 7)).into())?;
        let mut reader = socket.try_clone()?;
        let received = thread::spawn(move || {
            let mut received = Vec::new();
            reader.read_to_end(&mut received).map(|_| received)
        });
        socket.write_all(&pattern())?;
        has_joined.recv_timeout(TIMEOUT / 2).map_err(|_| Error::other("no second subflow"))?;
        socket.shutdown(Shutdown::Write)?;
        received.join().expect("no panic")
    }

    fn pattern() -> Vec<u8> {
        (0..BYTES).map(|each| (each % 251) as u8).collect()
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("tun skipped: it needs Linux");
}
