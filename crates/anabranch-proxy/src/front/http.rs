//! HTTP CONNECT. RFC 9110.

use std::io;
use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Problem, Target};

/// Longest header of a request in bytes (this project).
const MOST_BYTES: usize = 8192;
pub(super) const SUCCEEDED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
const ONLY_CONNECT: &[u8] =
    b"HTTP/1.1 405 Method Not Allowed\r\nAllow: CONNECT\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const BAD_REQUEST: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

pub(super) fn status(problem: Problem) -> String {
    let status = match problem {
        Problem::NotAllowed => "403 Forbidden",
        Problem::TimedOut => "504 Gateway Timeout",
        Problem::NoNetwork => "503 Service Unavailable",
        Problem::Unreachable | Problem::Refused | Problem::Other => "502 Bad Gateway",
    };
    format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

/// Read a request, whose first byte was read already. Returns `None` if it was refused.
pub(super) async fn accept<S>(stream: &mut S, first: u8) -> io::Result<Option<Target>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut header = vec![first];
    // The bytes after the header belong to the tunnel, so the header is read byte by byte. The
    // client's socket has a buffer.
    while !header.ends_with(b"\r\n\r\n") {
        if header.len() == MOST_BYTES {
            return refuse(stream, BAD_REQUEST).await;
        }
        header.push(stream.read_u8().await?);
    }
    let line = header.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let words: Vec<_> = std::str::from_utf8(line).unwrap_or_default().split(' ').collect();
    match words.as_slice() {
        ["CONNECT", authority, version] if version.starts_with("HTTP/1.") => match parse(authority)
        {
            Some(target) => Ok(Some(target)),
            None => refuse(stream, BAD_REQUEST).await,
        },
        [_, _, version] if version.starts_with("HTTP/1.") => refuse(stream, ONLY_CONNECT).await,
        _ => refuse(stream, BAD_REQUEST).await,
    }
}

/// The target of an authority with a port: `example.org:443` or `[2001:db8::7]:443`.
fn parse(authority: &str) -> Option<Target> {
    let (host, port) = authority.rsplit_once(':')?;
    let port = port.parse().ok().filter(|port| *port != 0)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match bare.unwrap_or(host).parse::<IpAddr>() {
        Ok(ip) => Some(Target::Address((ip, port).into())),
        Err(_) if bare.is_some() || host.is_empty() => None,
        Err(_) => Some(Target::Name(host.to_owned(), port)),
    }
}

async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, text: &[u8]) -> io::Result<Option<Target>> {
    stream.write_all(text).await?;
    stream.shutdown().await?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::{Front, accept};
    use super::*;

    async fn exchange(text: &str) -> (String, Option<(Front, Target)>) {
        let (mut program, mut proxy) = tokio::io::duplex(20_000);
        program.write_all(text.as_bytes()).await.expect("room");
        let result = accept(&mut proxy).await.expect("complete");
        drop(proxy);
        let mut answer = String::new();
        program.read_to_string(&mut answer).await.expect("readable");
        (answer, result)
    }

    #[tokio::test]
    async fn connect_names_a_target() {
        let (_, found) =
            exchange("CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\nhello").await;
        let target = Target::Name("example.org".to_owned(), 443);
        assert_eq!(found, Some((Front::Http, target)));
        for (authority, address) in
            [("192.0.2.1:80", "192.0.2.1:80"), ("[2001:db8::7]:80", "[2001:db8::7]:80")]
        {
            let (_, found) = exchange(&format!("CONNECT {authority} HTTP/1.0\r\n\r\n")).await;
            let expected = Target::Address(address.parse().expect("an address"));
            assert_eq!(found.map(|it| it.1), Some(expected));
        }
    }

    #[tokio::test]
    async fn other_requests_are_refused() {
        let (answer, found) = exchange("GET http://example.org/ HTTP/1.1\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 405 ") && found.is_none(), "{answer}");
        let long = format!("CONNECT a:1 HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(9000));
        for wrong in
            ["CONNECT a HTTP/1.1\r\n\r\n", "CONNECT a:0 HTTP/1.1\r\n\r\n", "x\r\n\r\n", &long]
        {
            let (answer, found) = exchange(wrong).await;
            assert!(answer.starts_with("HTTP/1.1 400 ") && found.is_none(), "{answer}");
        }
    }
}
