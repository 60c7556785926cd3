//! The behaviour of streams: data, half-close, back-pressure, errors, time.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use anabranch_host::{Emulation, Stream};
use anabranch_proto::{ConnectionError, Endpoint};
use bytes::{Buf, Bytes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

use crate::support::{connected, scenario, server_of, virtual_time};

#[test]
fn bytes_arrive_in_both_directions_over_both_paths() {
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 1).expect("it starts");
        let (mut client, mut server) = connected(&emulation).await;
        let up: Vec<u8> = (0..2_000_000_u32).map(|n| (n / 3) as u8).collect();
        let down: Vec<u8> = (0..1_000_000_u32).map(|n| (n / 7) as u8).collect();
        let (there, back) = (up.clone(), down.clone());
        let answering = tokio::spawn(async move {
            server.write_all(&back).await.expect("it is open");
            server.shutdown().await.expect("it is open");
            let mut got = Vec::new();
            server.read_to_end(&mut got).await.expect("it ends well");
            got
        });
        let (mut read, mut write) = tokio::io::split(client);
        let writing = tokio::spawn(async move {
            write.write_all(&there).await.expect("it is open");
            write.shutdown().await.expect("it is open");
            write
        });
        let mut got = Vec::new();
        read.read_to_end(&mut got).await.expect("it ends well");
        assert_eq!(got, down);
        assert_eq!(answering.await.expect("no panic"), up);
        client = read.unsplit(writing.await.expect("no panic"));
        // 16 Mbit towards the server at 2 · 10 Mbit/s take 0.8 s; one path alone would need 1.6 s.
        let seconds = emulation.now().as_secs_f64();
        assert!((0.8..1.6).contains(&seconds), "{seconds}");
        drop(client);
    });
}

#[test]
fn shared_data_arrives_as_copied_data_does() {
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 3).expect("it starts");
        let (mut client, mut server) = connected(&emulation).await;
        let sent: Vec<u8> = (0..2_000_000_u32).map(|n| (n / 3) as u8).collect();
        let mut left = Bytes::from(sent.clone());
        let sending = tokio::spawn(async move {
            while !left.is_empty() {
                let taken = poll_fn(|context| client.poll_send(context, left.clone())).await;
                left.advance(taken.expect("it is open"));
            }
            client.shutdown().await.expect("it is open");
            client
        });
        // What was received, but not read, comes first.
        let mut got = vec![0; 10];
        server.read_exact(&mut got).await.expect("it is open");
        let mut arrived = VecDeque::new();
        loop {
            let received = poll_fn(|context| server.poll_recv(context, 50_000, &mut arrived)).await;
            let count = received.expect("it ends well");
            assert_eq!(count, arrived.iter().map(Bytes::len).sum::<usize>());
            if count == 0 {
                break;
            }
            got.extend(arrived.drain(..).flatten());
        }
        assert!(got == sent, "{} bytes of {}", got.len(), sent.len());
        drop(sending.await.expect("no panic"));
    });
}

#[test]
fn the_other_direction_stays_open_after_a_half_close() {
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 2).expect("it starts");
        let (mut client, mut server) = connected(&emulation).await;
        client.write_all(b"question").await.expect("it is open");
        client.shutdown().await.expect("it is open");
        let error = client.write_all(b"more").await.expect_err("it is shut down");
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        let mut question = String::new();
        server.read_to_string(&mut question).await.expect("it ends well");
        sleep(Duration::from_secs(30)).await;
        server.write_all(b"answer").await.expect("only one direction is closed");
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("it ends well");
        assert_eq!((&*question, &*answer), ("question", "answer"));
    });
}

#[test]
fn streams_that_are_dropped_after_the_end_close_in_order() {
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 11).expect("it starts");
        let (mut client, mut server) = connected(&emulation).await;
        for stream in [&mut client, &mut server] {
            stream.write_all(b"all").await.expect("it is open");
            stream.shutdown().await.expect("it is open");
        }
        for stream in [&mut client, &mut server] {
            stream.read_to_end(&mut Vec::new()).await.expect("it ends well");
        }
        drop((client, server));
        sleep(Duration::from_secs(100)).await;
        let count = |host: &Endpoint| host.counters().mp_fastclose_rx;
        let resets = emulation.observe(|it| it.endpoints.map(count));
        assert_eq!(resets, [0, 0]);
    });
}

#[test]
fn a_writer_waits_for_its_reader() {
    virtual_time().block_on(async {
        let buffers = "send_buffer = \"100kB\"\nreceive_buffer = \"100kB\"";
        let emulation = Emulation::new(&scenario(buffers), 3).expect("it starts");
        let (mut client, mut server) = connected(&emulation).await;
        let mut written = 0;
        let chunk = vec![1; 10_000];
        while let Ok(count) = timeout(Duration::from_secs(10), client.write(&chunk)).await {
            written += count.expect("it is open");
        }
        // The two buffers, and no more.
        assert!((190_000..=210_000).contains(&written), "{written}");
        drop(tokio::spawn(async move {
            sleep(Duration::from_secs(1)).await;
            tokio::io::copy(&mut server, &mut tokio::io::sink()).await
        }));
        timeout(Duration::from_secs(5), client.write_all(&vec![1; 500_000]))
            .await
            .expect("the reader makes room")
            .expect("it is open");
    });
}

#[test]
fn a_connection_to_a_port_without_listener_is_refused_after_a_round_trip() {
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 4).expect("it starts");
        let error = emulation.client().connect(server_of(&emulation)).await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        assert!((20..=22).contains(&emulation.now().as_millis()));
    });
}

#[test]
fn a_connection_over_a_dead_path_times_out_after_the_syn_retries() {
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 5).expect("it starts");
        emulation.set_path(0, false).expect("it has this path");
        let mut config = emulation.client().config().clone();
        config.tcp = config.tcp.syn_retries(2);
        let connecting = emulation.client().connect_with(server_of(&emulation), config);
        let error = connecting.await.expect_err("nobody answers");
        assert_eq!(error.kind(), ErrorKind::TimedOut);
        // RFC 6298 §2.1 and §5.5: 1 s, 2 s and 4 s.
        assert_eq!(emulation.now().as_millis().div_ceil(100), 70);
    });
}

#[test]
fn a_transfer_survives_the_loss_of_its_first_path() {
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 6).expect("it starts");
        let (mut client, mut server) = connected(&emulation).await;
        let received =
            tokio::spawn(async move { tokio::io::copy(&mut server, &mut tokio::io::sink()).await });
        client.write_all(&vec![1; 1_000_000]).await.expect("it is open");
        // Both subflows are established by now.
        sleep(Duration::from_millis(200)).await;
        emulation.set_path(0, false).expect("it has this path");
        client.write_all(&vec![1; 1_000_000]).await.expect("the other path lives");
        client.shutdown().await.expect("it is open");
        assert_eq!(received.await.expect("no panic").expect("it ends well"), 2_000_000);
    });
}

#[test]
fn the_peer_of_an_aborted_stream_and_of_one_with_unread_data_is_reset() {
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 7).expect("it starts");
        let listener = emulation.server().listen(80).expect("the port is free");
        for aborts in [true, false] {
            let connecting = emulation.client().connect(server_of(&emulation));
            let (client, server) = tokio::join!(connecting, listener.accept());
            let (client, mut server) = (client.expect("open"), server.expect("open").0);
            server.write_all(b"unread").await.expect("it is open");
            sleep(Duration::from_secs(1)).await;
            if aborts {
                client.abort();
            }
            drop(client);
            let error = server.read(&mut [0; 9]).await.expect_err("it is reset");
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        }
        assert_eq!(emulation.observe(|it| it.endpoints[0].connections().count()), 0);
        // A dropped listener refuses.
        drop(listener);
        let error = emulation.client().connect(server_of(&emulation)).await.expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}

/// Two ends of a connection. The answer of the server and the end of its stream have arrived at the client.
/// Neither program has read anything, so the client is reset when the server drops its end.
async fn after_an_answer(emulation: &Emulation) -> (Stream, Stream) {
    let (mut client, mut server) = connected(emulation).await;
    client.write_all(b"unread").await.expect("it is open");
    server.write_all(b"answer").await.expect("it is open");
    server.shutdown().await.expect("it is open");
    sleep(Duration::from_secs(1)).await;
    (client, server)
}

#[test]
fn a_stream_that_had_its_end_before_a_reset_is_read_to_its_end() {
    for protocol in ["protocol = \"tcp\"", ""] {
        virtual_time().block_on(async {
            let emulation = Emulation::new(&scenario(protocol), 7).expect("it starts");
            let (mut client, server) = after_an_answer(&emulation).await;
            drop(server);
            sleep(Duration::from_secs(1)).await;
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).await.expect("the end came first");
            assert_eq!(answer, b"answer");
            let error = client.write_all(b"more").await.expect_err("nobody reads");
            assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        });
    }
}

#[test]
fn a_stream_whose_data_was_discarded_does_not_seem_whole() {
    // A host of RFC 9293 discards what the application has not read when a reset arrives, and each host
    // does so when the program aborts.
    for (host, aborts) in [("host = \"rfc\"", false), ("host = \"linux\"", true)] {
        virtual_time().block_on(async {
            let emulation = Emulation::new(&scenario(host), 7).expect("it starts");
            let (mut client, server) = after_an_answer(&emulation).await;
            if aborts {
                client.abort();
            }
            drop(server);
            sleep(Duration::from_secs(1)).await;
            let mut answer = Vec::new();
            let error = client.read_to_end(&mut answer).await.expect_err("data is missing");
            let expected =
                if aborts { ErrorKind::ConnectionAborted } else { ErrorKind::ConnectionReset };
            assert_eq!((error.kind(), answer.len()), (expected, 0));
        });
    }
}

#[test]
fn a_port_has_one_listener_and_a_host_one_family() {
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 8).expect("it starts");
        let _listener = emulation.server().listen(80).expect("the port is free");
        let error = emulation.server().listen(80).expect_err("it is taken");
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        let other: std::net::SocketAddr = "[2001:db8::1]:80".parse().expect("an address");
        let error = emulation.client().connect(other).await.expect_err("all paths have IPv4");
        assert_eq!(error.kind(), ErrorKind::AddrNotAvailable);
    });
}

#[test]
fn hosts_forget_closed_connections_and_dropped_connects() {
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 9).expect("it starts");
        let listener = emulation.server().listen(80).expect("the port is free");
        for _ in 0..50 {
            let connecting = emulation.client().connect(server_of(&emulation));
            let (client, server) = tokio::join!(connecting, listener.accept());
            drop((client, server));
            let connecting = emulation.client().connect(server_of(&emulation));
            assert!(timeout(Duration::from_millis(1), connecting).await.is_err());
        }
        // TIME-WAIT is 60 s. A SYN/ACK for a client that has given up gets RST.
        sleep(Duration::from_secs(300)).await;
        let left = emulation.observe(|it| it.endpoints.map(|host| host.connections().count()));
        assert_eq!(left, [0, 0]);
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test compares with real time")]
fn time_is_virtual() {
    let started = std::time::Instant::now();
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 10).expect("it starts");
        let (mut client, server) = connected(&emulation).await;
        let before = Instant::now();
        let mut buffer = [0; 1];
        assert!(timeout(Duration::from_secs(3600), client.read(&mut buffer)).await.is_err());
        assert_eq!(before.elapsed(), Duration::from_secs(3600));
        drop(server);
        assert_eq!(client.read(&mut [0; 1]).await.expect("the end"), 0);
    });
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[test]
fn each_of_several_tasks_gets_a_connection() {
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 1).expect("it starts");
        let listener = Arc::new(emulation.server().listen(80).expect("the port is free"));
        let tasks = [0, 1].map(|_| {
            let listener = Arc::clone(&listener);
            tokio::spawn(async move { listener.accept().await.expect("it accepts").1 })
        });
        // Both tasks wait before the first connection comes.
        sleep(Duration::from_secs(1)).await;
        let to = server_of(&emulation);
        let client = emulation.client();
        let (one, other) = tokio::join!(client.connect(to), client.connect(to));
        assert!(one.is_ok() && other.is_ok());
        for task in tasks {
            let accepted = timeout(Duration::from_secs(10), task).await;
            accepted.expect("each gets a connection").expect("no panic");
        }
    });
}

#[test]
fn connections_that_no_listener_accepts_end_in_the_records() {
    virtual_time().block_on(async {
        let emulation = Emulation::new(&scenario(""), 1).expect("it starts");
        let server = emulation.server();
        server.keep_records();
        let listener = server.listen(80).expect("the port is free");
        let client = emulation.client().connect(server_of(&emulation)).await.expect("it connects");
        sleep(Duration::from_secs(1)).await;
        drop(listener);
        let ends: Vec<_> =
            server.inspect(|_, _, records| records.iter().map(|record| record.ended).collect());
        assert!(matches!(ends[..], [Some((_, Some(ConnectionError::Aborted)))]), "{ends:?}");
        drop(client);
    });
}
