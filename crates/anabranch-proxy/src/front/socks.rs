//! SOCKS version 5, without authentication. RFC 1928.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Problem, Target};

pub(super) const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_ACCEPTABLE_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const DOMAIN_NAME: u8 = 3;
const IPV6: u8 = 4;

/// Codes of replies. RFC 1928 §6.
pub(super) const SUCCEEDED: u8 = 0;
const GENERAL_FAILURE: u8 = 1;
const NOT_ALLOWED: u8 = 2;
const NETWORK_UNREACHABLE: u8 = 3;
const HOST_UNREACHABLE: u8 = 4;
const REFUSED: u8 = 5;
const TTL_EXPIRED: u8 = 6;
const COMMAND_NOT_SUPPORTED: u8 = 7;
const ADDRESS_NOT_SUPPORTED: u8 = 8;

pub(super) fn code(problem: Problem) -> u8 {
    match problem {
        Problem::NotAllowed => NOT_ALLOWED,
        Problem::NoNetwork => NETWORK_UNREACHABLE,
        Problem::Unreachable => HOST_UNREACHABLE,
        Problem::Refused => REFUSED,
        Problem::TimedOut => TTL_EXPIRED,
        Problem::Other => GENERAL_FAILURE,
    }
}

/// A reply without an address: programs have no use for the relay's.
pub(super) fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, IPV4, 0, 0, 0, 0, 0, 0]
}

/// Read a greeting, whose version was read already, and a request. Returns `None` if it was refused.
pub(super) async fn accept<S>(stream: &mut S) -> io::Result<Option<Target>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut methods = vec![0; stream.read_u8().await?.into()];
    stream.read_exact(&mut methods).await?;
    if !methods.contains(&NO_AUTHENTICATION) {
        stream.write_all(&[VERSION, NO_ACCEPTABLE_METHOD]).await?;
        return Ok(None);
    }
    stream.write_all(&[VERSION, NO_AUTHENTICATION]).await?;
    let mut request = [0; 4];
    stream.read_exact(&mut request).await?;
    let [version, command, _, kind] = request;
    if version != VERSION {
        return refuse(stream, GENERAL_FAILURE).await;
    }
    let target = match kind {
        IPV4 => address(read::<4>(stream).await?, stream.read_u16().await?),
        IPV6 => address(read::<16>(stream).await?, stream.read_u16().await?),
        DOMAIN_NAME => {
            let mut name = vec![0; stream.read_u8().await?.into()];
            stream.read_exact(&mut name).await?;
            let port = stream.read_u16().await?;
            match String::from_utf8(name) {
                Ok(name) if !name.is_empty() => named(name, port),
                _ => return refuse(stream, ADDRESS_NOT_SUPPORTED).await,
            }
        }
        _ => return refuse(stream, ADDRESS_NOT_SUPPORTED).await,
    };
    // BIND would need a port of the relay, and UDP ASSOCIATE another protocol than TCP.
    if command != CONNECT {
        return refuse(stream, COMMAND_NOT_SUPPORTED).await;
    }
    Ok(Some(target))
}

async fn read<const N: usize>(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn address(ip: impl Into<IpAddr>, port: u16) -> Target {
    Target::Address(SocketAddr::new(ip.into(), port))
}

/// A name, which may be an address in letters.
fn named(name: String, port: u16) -> Target {
    match name.parse::<IpAddr>() {
        Ok(ip) => address(ip, port),
        Err(_) => Target::Name(name, port),
    }
}

async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, code: u8) -> io::Result<Option<Target>> {
    stream.write_all(&reply(code)).await?;
    stream.shutdown().await?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::super::{Front, accept};
    use super::*;

    /// Bytes that a program gets after it sent `bytes`, and the request that the proxy reads.
    async fn exchange(bytes: &[u8]) -> (Vec<u8>, Option<(Front, Target)>) {
        let (mut program, mut proxy) = tokio::io::duplex(4096);
        program.write_all(bytes).await.expect("room");
        let result = accept(&mut proxy).await.expect("complete");
        drop(proxy);
        let mut answer = Vec::new();
        program.read_to_end(&mut answer).await.expect("readable");
        (answer, result)
    }

    #[tokio::test]
    async fn addresses_and_names_are_targets() {
        // RFC 1928 §3, §4
        let (answer, found) = exchange(&[5, 1, 0, 5, 1, 0, 1, 192, 0, 2, 1, 1, 0xbb]).await;
        assert_eq!(answer, [5, 0]);
        let target = Target::Address("192.0.2.1:443".parse().expect("an address"));
        assert_eq!(found, Some((Front::Socks, target)));
        let request = [&[5, 2, 2, 0, 5, 1, 0, 3, 11][..], b"example.org", &[0, 80]].concat();
        let (_, found) = exchange(&request).await;
        assert_eq!(found.map(|it| it.1), Some(Target::Name("example.org".to_owned(), 80)));
        let ipv6 = [&[5, 1, 0, 5, 1, 0, 4, 0x20, 1, 0xd, 0xb8][..], &[0; 11], &[7, 0, 80]].concat();
        let (_, found) = exchange(&ipv6).await;
        let target = Target::Address("[2001:db8::7]:80".parse().expect("an address"));
        assert_eq!(found.map(|it| it.1), Some(target));
    }

    #[tokio::test]
    async fn bind_and_udp_associate_are_refused() {
        // RFC 1928 §6: command not supported.
        for command in [2, 3] {
            let (answer, found) = exchange(&[5, 1, 0, 5, command, 0, 1, 192, 0, 2, 1, 0, 80]).await;
            assert_eq!((answer, found), ([&[5, 0][..], &reply(7)].concat(), None));
        }
    }

    #[tokio::test]
    async fn other_methods_addresses_and_versions_are_refused() {
        // RFC 1928 §3
        assert_eq!(exchange(&[5, 1, 2]).await, (vec![5, 0xff], None));
        let (answer, found) = exchange(&[5, 1, 0, 5, 1, 0, 9, 0, 0]).await;
        assert_eq!((answer, found), ([&[5, 0][..], &reply(8)].concat(), None));
        let (_, mut proxy) = tokio::io::duplex(10);
        assert!(accept(&mut proxy).await.is_err());
        let (mut program, mut proxy) = tokio::io::duplex(10);
        program.write_all(&[4]).await.expect("room");
        assert!(accept(&mut proxy).await.is_err());
    }
}
