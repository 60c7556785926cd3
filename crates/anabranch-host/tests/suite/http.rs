//! hyper's clients and servers, unmodified, over streams: HTTP/1 and HTTP/2.

use std::convert::Infallible;

use anabranch_host::{Emulation, Stream};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::support::{scenario, server_of, virtual_time};

#[derive(Clone, Copy, Debug)]
enum Version {
    Http1,
    Http2,
}

/// Answers with as many bytes as the path says, after the request's own body.
async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let size: usize = request.uri().path()[1..].parse().expect("a number");
    let body = request.into_body().collect().await.expect("the body ends").to_bytes();
    let bytes: Vec<u8> = body.iter().copied().chain((0..size).map(|n| (n / 5) as u8)).collect();
    Ok(Response::new(Full::from(bytes)))
}

async fn serve(version: Version, stream: Stream) {
    let (io, service) = (TokioIo::new(stream), service_fn(answer));
    // Without dates, whose values would change from run to run.
    let served = match version {
        Version::Http1 => {
            hyper::server::conn::http1::Builder::new()
                .auto_date_header(false)
                .serve_connection(io, service)
                .await
        }
        Version::Http2 => {
            hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .auto_date_header(false)
                .serve_connection(io, service)
                .await
        }
    };
    served.expect("the client closes");
}

/// Requests of these sizes over one connection: one after another with HTTP/1, all at once with
/// HTTP/2. Returns the digest of all packets.
fn exchange(version: Version, seed: u64, sizes: &'static [usize]) -> u64 {
    virtual_time().block_on(async move {
        let emulation = Emulation::new(&scenario("scheduler = \"ecf\""), seed).expect("it starts");
        let listener = emulation.server().listen(80).expect("the port is free");
        let serving = tokio::spawn(async move {
            let (stream, _) = listener.accept().await.expect("a connection");
            serve(version, stream).await;
        });
        let stream = emulation.client().connect(server_of(&emulation)).await.expect("it opens");
        match version {
            Version::Http1 => {
                let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
                let (mut sender, connection) = shaken.expect("a connection");
                let driving = tokio::spawn(connection);
                for size in sizes {
                    check(sender.send_request(request(*size)).await, *size).await;
                }
                drop(sender);
                driving.await.expect("no panic").expect("it ends well");
            }
            Version::Http2 => {
                let io = TokioIo::new(stream);
                let shaken = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await;
                let (sender, connection) = shaken.expect("a connection");
                let driving = tokio::spawn(connection);
                let all: Vec<_> = sizes
                    .iter()
                    .map(|size| {
                        let mut sender = sender.clone();
                        tokio::spawn(async move {
                            check(sender.send_request(request(*size)).await, *size).await;
                        })
                    })
                    .collect();
                for each in all {
                    each.await.expect("no panic");
                }
                drop(sender);
                driving.await.expect("no panic").expect("it ends well");
            }
        }
        serving.await.expect("no panic");
        emulation.digest()
    })
}

fn request(size: usize) -> Request<Full<Bytes>> {
    let body = Full::from(vec![9; size / 10]);
    Request::post(format!("http://server/{size}")).body(body).expect("a request")
}

async fn check(response: hyper::Result<Response<Incoming>>, size: usize) {
    let response = response.expect("an answer");
    assert_eq!(response.status(), StatusCode::OK);
    let body = response.into_body().collect().await.expect("the body ends").to_bytes();
    let (own, rest) = body.split_at(size / 10);
    assert!(own.iter().all(|byte| *byte == 9));
    assert!(rest.len() == size && rest.iter().enumerate().all(|(n, byte)| *byte == (n / 5) as u8));
}

#[test]
fn http_1_and_http_2_carry_requests_and_answers() {
    for version in [Version::Http1, Version::Http2] {
        exchange(version, 1, &[10, 100_000, 2_000_000, 0, 50]);
    }
}

#[test]
fn equal_seeds_give_equal_digests_and_other_seeds_give_others() {
    for version in [Version::Http1, Version::Http2] {
        let digest = |seed| exchange(version, seed, &[1_000, 30_000, 60_000]);
        let mut all: Vec<_> = (0..1_000)
            .map(|seed| {
                let first = digest(seed);
                assert_eq!(first, digest(seed), "{version:?}, seed {seed}");
                first
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 1_000, "{version:?}");
    }
}
