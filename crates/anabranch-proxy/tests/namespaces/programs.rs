//! Programs at both ends: a server and its client, and tools that record and repeat bytes.
#![expect(clippy::disallowed_methods, reason = "the test measures real time")]

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anabranch_live::unacknowledged;
use anabranch_wire::pattern;
use socket2::{Domain, Protocol, Socket, Type};

/// Bytes that [`PAGE`] fetches.
pub(crate) const PAGE_BYTES: usize = 6_000_000;
/// A page that fetches `BYTES` bytes, and shows their number and their checksum once it is loaded.
const PAGE: &str = r#"<!DOCTYPE html><body><script>
const request = new XMLHttpRequest();
request.open("GET", "/BYTES", false);
request.overrideMimeType("text/plain; charset=x-user-defined");
request.send();
const text = request.responseText;
let sum = 0;
for (let at = 0; at < text.length; at++)
  sum = (Math.imul(sum, 31) + (text.charCodeAt(at) & 255)) >>> 0;
document.body.textContent = `${text.length} bytes, sum ${sum}.`;
</script></body>"#;
/// Address and port of the client for programs.
const PROXY: &str = "127.0.0.1:1080";

/// A server: each connection asks for a number of bytes in a line, and gets them after a line with
/// the bytes that it then sends (until its end of the stream). After `reset` and a number, the server
/// reads nothing more, and resets the connection when the bytes have arrived. The kernel's sockets
/// speak Multipath TCP if it can. Arguments: PORT.
pub(crate) fn serve(arguments: &[String]) {
    let address =
        SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), arguments[0].parse().expect("a port"));
    let of = |protocol| Socket::new(Domain::IPV6, Type::STREAM, Some(protocol));
    let socket = of(Protocol::MPTCP).or_else(|_| of(Protocol::TCP)).expect("a socket");
    // IPv4 arrives here, too.
    socket.set_only_v6(false).expect("an IPv6 socket");
    socket.bind(&address.into()).expect("the port is free");
    socket.listen(1024).expect("it is bound");
    let listener = TcpListener::from(socket);
    for stream in listener.incoming().flatten() {
        thread::spawn(move || answer(stream));
    }
}

/// Answers a plain number, also with `reset`, and HTTP requests whose path is one, or names a page.
fn answer(mut stream: TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let http = line.strip_prefix("GET /").and_then(|line| line.split(' ').next());
    if http == Some("page") {
        let page = PAGE.replace("BYTES", &PAGE_BYTES.to_string());
        let length = page.len();
        let about = format!("Content-Type: text/html\r\nContent-Length: {length}");
        return write!(stream, "HTTP/1.1 200 OK\r\n{about}\r\nConnection: close\r\n\r\n{page}");
    }
    let resets = line.strip_prefix("reset ");
    let count = http.or(resets).unwrap_or(&line).trim();
    let count: usize = count.parse().map_err(|_| ErrorKind::InvalidData)?;
    if http.is_some() {
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {count}\r\nConnection: close\r\n\r\n")?;
    }
    let mut sent = 0;
    while sent < count {
        let chunk = pattern::MAX_SLICE.min(count - sent);
        stream.write_all(pattern::slice(pattern::phase_of(sent as u64), chunk))?;
        sent += chunk;
    }
    if resets.is_some() {
        while unacknowledged(&stream) > 0 {
            thread::sleep(Duration::from_millis(10));
        }
        // The kernel resets a connection that is closed with unread data.
        return Ok(());
    }
    stream.shutdown(Shutdown::Write)?;
    io::copy(&mut reader, &mut io::sink()).map(|_| ())
}

/// Result of a transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transfer {
    pub(crate) bytes: usize,
    pub(crate) seconds: f64,
    /// Longest time without a byte, after the first.
    pub(crate) longest_pause: f64,
    /// Time until the first byte.
    pub(crate) first_byte: f64,
}

impl Transfer {
    /// From the line that [`fetch`] prints.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|it| it.parse().ok()).collect();
        let [bytes, seconds, longest_pause, first_byte] = numbers.try_into().ok()?;
        Some(Transfer { bytes: bytes as usize, seconds, longest_pause, first_byte })
    }

    pub(crate) fn mbit_per_s(&self) -> f64 {
        self.bytes as f64 * 8e-6 / self.seconds
    }
}

/// Fetch bytes through the proxy, compare them with the pattern, and print a line for each transfer.
/// Arguments: TARGET (`HOST:PORT`; `direct:ADDRESS:PORT` without the proxy; `closed:ADDRESS:PORT` ends
/// its direction after the request; with `reset:` before any of them, the server resets the connection
/// during an upload), BYTES, number of CONNECTIONS at a time.
pub(crate) fn fetch(arguments: &[String]) {
    let [target, bytes, connections] = arguments else { panic!("three arguments") };
    let (bytes, connections): (usize, usize) =
        (bytes.parse().expect("bytes"), connections.parse().expect("a number"));
    let all: Vec<_> = (0..connections)
        .map(|_| {
            let target = target.clone();
            thread::spawn(move || transfer(&target, bytes))
        })
        .collect();
    for each in all {
        match each.join().expect("no panic") {
            Ok(it) => {
                println!("{} {} {} {}", it.bytes, it.seconds, it.longest_pause, it.first_byte);
            }
            Err(error) => println!("failed: {error}"),
        }
    }
}

fn transfer(target: &str, bytes: usize) -> io::Result<Transfer> {
    let started = Instant::now();
    let (resets, target) =
        target.strip_prefix("reset:").map_or((false, target), |target| (true, target));
    let (closes, target) =
        target.strip_prefix("closed:").map_or((false, target), |target| (true, target));
    let mut stream = match target.strip_prefix("direct:") {
        Some(target) => {
            let target = target.parse().map_err(|_| ErrorKind::InvalidInput)?;
            TcpStream::connect_timeout(&target, Duration::from_secs(3))?
        }
        None => through_socks(target)?,
    };
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    // In one piece, so that no acknowledgement is waited for.
    let request = if resets { "reset " } else { "" };
    stream.write_all(format!("{request}{bytes}\n").as_bytes())?;
    if closes {
        stream.shutdown(Shutdown::Write)?;
    }
    let upload = resets.then(|| upload_until_reset(&stream)).transpose()?;
    let (mut buffer, mut count) = (vec![0; pattern::MAX_SLICE], 0);
    let (mut first_byte, mut last, mut longest) = (None, started, 0.0_f64);
    loop {
        let len = match stream.read(&mut buffer) {
            Err(error) if resets && error.kind() == ErrorKind::ConnectionReset => 0,
            other => other?,
        };
        if len == 0 {
            break;
        }
        let now = Instant::now();
        if first_byte.is_some() {
            longest = longest.max((now - last).as_secs_f64());
        }
        first_byte.get_or_insert((now - started).as_secs_f64());
        last = now;
        if buffer[..len] != *pattern::slice(pattern::phase_of(count as u64), len) {
            return Err(io::Error::other(format!("wrong bytes after {count}")));
        }
        count += len;
    }
    if count != bytes {
        return Err(io::Error::other(format!("{count} bytes of {bytes}")));
    }
    upload.map_or(Ok(()), |upload| upload.join().expect("no panic"))?;
    let seconds = started.elapsed().as_secs_f64();
    let first_byte = first_byte.unwrap_or(seconds);
    Ok(Transfer { bytes, seconds, longest_pause: longest, first_byte })
}

/// Upload in the background until the connection is reset. Its answer is read late.
fn upload_until_reset(stream: &TcpStream) -> io::Result<JoinHandle<io::Result<()>>> {
    let mut stream = stream.try_clone()?;
    stream.set_write_timeout(Some(Duration::from_secs(20)))?;
    let upload = thread::spawn(move || {
        loop {
            match stream.write_all(&[0; 1 << 16]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(error),
                Err(_) => return Ok(()),
                Ok(()) => {}
            }
        }
    });
    thread::sleep(Duration::from_secs(3));
    Ok(upload)
}

fn through_socks(target: &str) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(PROXY)?;
    let (host, port) = target.rsplit_once(':').ok_or(ErrorKind::InvalidInput)?;
    let mut request = vec![5, 1, 0, 5, 1, 0];
    match host.trim_matches(['[', ']']).parse() {
        Ok(IpAddr::V4(ip)) => request.extend([&[1][..], &ip.octets()].concat()),
        Ok(IpAddr::V6(ip)) => request.extend([&[4][..], &ip.octets()].concat()),
        Err(_) => request.extend([&[3, host.len() as u8][..], host.as_bytes()].concat()),
    }
    let port: u16 = port.parse().map_err(|_| ErrorKind::InvalidInput)?;
    request.extend(port.to_be_bytes());
    stream.write_all(&request)?;
    let mut reply = [0; 12];
    stream.read_exact(&mut reply)?;
    match reply {
        [5, 0, 5, 0, ..] => Ok(stream),
        [.., _, _, _, _, _, _, _, _] => {
            Err(io::Error::other(format!("SOCKS replies with code {}", reply[3])))
        }
    }
}

/// Accept a connection, write the first bytes that arrive to a file, and end. Arguments: PORT, FILE.
pub(crate) fn record(arguments: &[String]) {
    let listener = TcpListener::bind(format!("0.0.0.0:{}", arguments[0])).expect("a port");
    let (mut stream, _) = listener.accept().expect("a connection");
    let mut buffer = vec![0; 2000];
    let count = stream.read(&mut buffer).expect("bytes");
    std::fs::write(&arguments[1], &buffer[..count]).expect("a file");
}

/// Send the bytes of a file over a socket of the kernel, and print those of the answer until it ends
/// or pauses. Arguments: ADDRESS, FILE.
pub(crate) fn send(arguments: &[String]) {
    let mut stream = TcpStream::connect(&arguments[0]).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(1))).expect("a socket");
    stream.write_all(&std::fs::read(&arguments[1]).expect("a file")).expect("it is open");
    let (mut answer, mut buffer) = (Vec::<u8>::new(), [0; 2000]);
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        answer.extend(&buffer[..count]);
    }
    println!("{answer:?}");
}

/// Open connections with sockets of the kernel, send the bytes of a file over each, print a line, and
/// keep them. Arguments: ADDRESS, COUNT, FILE.
pub(crate) fn hold(arguments: &[String]) {
    let [address, count, file] = arguments else { panic!("three arguments") };
    let bytes = std::fs::read(file).expect("a file");
    let open = |_| {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(&bytes).expect("it is open");
        stream
    };
    let streams: Vec<_> = (0..count.parse().expect("a number")).map(open).collect();
    println!("open");
    thread::sleep(Duration::from_secs(60));
    drop(streams);
}
