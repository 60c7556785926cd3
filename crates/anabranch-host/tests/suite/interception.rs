//! A host that takes every connection, whatever its destination.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use anabranch_host::Emulation;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{sleep, timeout};

use crate::support::{scenario, virtual_time};

#[test]
fn an_interceptor_accepts_in_the_name_of_the_destination_refuses_or_stays_silent() {
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 1).expect("it starts");
        let interceptor = emulation.server().intercept();
        let config = emulation.server().config().clone();
        tokio::spawn(async move {
            while let Ok(incoming) = interceptor.next().await {
                let config = config.clone();
                tokio::spawn(async move {
                    let to = incoming.destination();
                    // As if it asked the destination first.
                    sleep(Duration::from_millis(500)).await;
                    match to.port() {
                        80 => {
                            let mut stream = incoming.accept(config).await.expect("it opens");
                            assert_eq!(stream.local_addr(), to);
                            stream.write_all(to.to_string().as_bytes()).await.expect("open");
                        }
                        81 => incoming.refuse(),
                        _ => drop(incoming),
                    }
                });
            }
        });
        for to in ["192.0.2.7:80", "198.51.100.9:80"] {
            let mut stream = emulation.client().connect(address(to)).await.expect("it opens");
            let mut said = String::new();
            stream.read_to_string(&mut said).await.expect("it ends well");
            assert_eq!((&*said, stream.peer_addr()), (to, address(to)));
        }
        let refused = emulation.client().connect(address("192.0.2.7:81")).await;
        assert_eq!(refused.expect_err("refused").kind(), ErrorKind::ConnectionRefused);
        let silent = emulation.client().connect(address("192.0.2.7:82"));
        assert!(timeout(Duration::from_secs(20), silent).await.is_err());
    });
}

#[test]
fn two_hundred_connections_at_once_use_both_paths() {
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 2).expect("it starts");
        let interceptor = emulation.server().intercept();
        let config = emulation.server().config().clone();
        tokio::spawn(async move {
            while let Ok(incoming) = interceptor.next().await {
                let config = config.clone();
                tokio::spawn(async move {
                    let mut stream = incoming.accept(config).await.expect("it opens");
                    let mut bytes = Vec::new();
                    stream.read_to_end(&mut bytes).await.expect("it ends well");
                    stream.write_all(&bytes).await.expect("it is open");
                });
            }
        });
        let clients: Vec<_> = (0..200_u8)
            .map(|number| {
                let client = emulation.client().clone();
                tokio::spawn(async move {
                    let to = SocketAddr::from(([192, 0, 2, number], 80));
                    let mut stream = client.connect(to).await.expect("it opens");
                    stream.write_all(&[number; 20_000]).await.expect("it is open");
                    stream.shutdown().await.expect("it is open");
                    let mut bytes = Vec::new();
                    stream.read_to_end(&mut bytes).await.expect("it ends well");
                    assert_eq!(bytes, [number; 20_000]);
                })
            })
            .collect();
        for client in clients {
            client.await.expect("no panic");
        }
        let carried = emulation.observe(|it| {
            [0, 1].map(|path| it.paths.link_of(path, anabranch_net::Side::Server).stats().bytes_in)
        });
        assert!(carried.iter().all(|bytes| *bytes > 100_000), "{carried:?}");
    });
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}
