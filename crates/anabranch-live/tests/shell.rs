//! Programs inside the emulated network: this test starts itself as the program. A host that does not
//! support this skips the test and reports the reason.

#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "the test measures real time")]
mod linux {
    use std::io::{self, ErrorKind, Read, Write};
    use std::net::{
        Ipv4Addr, Ipv6Addr, Shutdown, TcpListener, TcpStream, ToSocketAddrs, UdpSocket,
    };
    use std::process::exit;
    use std::thread;
    use std::time::{Duration, Instant};

    use anabranch_live::{Shell, ShellOptions, ShellOutcome, exec_program, is_sandbox};
    use anabranch_sim::scenario::Scenario;

    /// Two paths of 20 Mbit/s: 10 ms and 30 ms each way.
    const TWO_PATHS: &str = r#"
        name = "two-paths"
        duration = "60s"
        [[path]]
        name = "near"
        rate = "20Mbit/s"
        delay = "10ms"
        limit = "100packets"
        [[path]]
        name = "far"
        rate = "20Mbit/s"
        delay = "30ms"
        limit = "200packets"
        [[connection]]
        workload = { kind = "bulk" }
    "#;
    /// A transfer takes this many bytes: 0.8 s over both paths, and 1.6 s over one.
    const BYTES: usize = 4_000_000;
    const CASES: [&str; 7] =
        ["both-ways", "refused", "many", "udp", "ipv6", "own-loopback", "no-privileges"];
    /// Cases in which the program's own sockets use the paths. They are plain TCP, on the first path.
    const OF_KERNEL: [&str; 4] = ["refused", "many", "udp", "own-loopback"];
    /// Exit status of a program that saw the expected result.
    const WELL: i32 = 77;

    pub(crate) fn main() {
        let arguments: Vec<String> = std::env::args().collect();
        if is_sandbox() {
            let error = exec_program(&arguments[1..]);
            eprintln!("shell: {error}");
            exit(1);
        }
        if let Some(("--program", rest)) =
            arguments[1..].split_first().map(|(first, rest)| (first.as_str(), rest))
        {
            let port = rest[1].parse().expect("a port");
            match program(&rest[0], port) {
                Ok(()) => exit(WELL),
                Err(error) => {
                    eprintln!("{}: {error}", rest[0]);
                    exit(1);
                }
            }
        }
        run_all();
    }

    fn run_all() {
        let (port, ipv6) = serve().expect("loopback works");
        let mut failed = 0;
        let of_engine = CASES.map(|case| (case, false));
        let of_kernel = OF_KERNEL.map(|case| (case, true));
        for (case, kernel) in of_engine.into_iter().chain(of_kernel) {
            let name = format!("{case}{}", if kernel { ", of the kernel" } else { "" });
            if case == "ipv6" && !ipv6 {
                println!("{name} ... skipped: the host has no ::1");
                continue;
            }
            let started = Instant::now();
            match in_shell(case, kernel, port) {
                Err(error) => println!("{name} ... skipped: {error}"),
                Ok(outcome) => {
                    let problem = judge(case, &outcome);
                    let took = started.elapsed().as_secs_f64();
                    println!("{name} ... {} ({took:.1} s)", problem.as_deref().unwrap_or("ok"));
                    failed += i32::from(problem.is_some());
                }
            }
        }
        exit(failed.min(1));
    }

    fn in_shell(case: &str, of_kernel: bool, port: u16) -> io::Result<ShellOutcome> {
        let scenario = Scenario::from_toml(TWO_PATHS, "two_paths.toml").expect("it is right");
        let this = std::env::current_exe()?.to_string_lossy().into_owned();
        let port = port.to_string();
        let helper = [&this, &this, "--program", case, &port].map(str::to_owned).into();
        let options = ShellOptions::new(helper).of_kernel(of_kernel);
        let shell = Shell::start(&scenario, 1, options).map_err(io::Error::other)?;
        shell.finish().map_err(io::Error::other)
    }

    fn judge(case: &str, outcome: &ShellOutcome) -> Option<String> {
        if outcome.status != WELL {
            return Some(format!("the program exited with {}", outcome.status));
        }
        if case == "own-loopback" {
            return outcome.recorded.is_some().then(|| "it used the paths".to_owned());
        }
        if case != "both-ways" {
            return None;
        }
        let (tables, scenario) = outcome.recorded.as_ref()?;
        let links = tables.iter().find(|table| table.name == "links").expect("every run has it");
        let delivered = links.column("bytes_delivered").expect("it has it").numbers();
        // A connection towards each host, over each of two paths.
        let idle = delivered.iter().any(|bytes| *bytes < 1_000_000);
        let names: Vec<_> = scenario.connections.iter().map(|each| &each.name).collect();
        (idle || names.len() != 1).then(|| format!("{names:?} {delivered:?}"))
    }

    /// A service on the host's loopback interface: it reads a stream to its end, and answers with
    /// the same bytes. It echoes datagrams as well. Returns its port, and whether it has IPv6.
    fn serve() -> io::Result<(u16, bool)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let datagrams = UdpSocket::bind((Ipv4Addr::LOCALHOST, port))?;
        let accept = |listener: TcpListener| {
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    thread::spawn(move || echo(stream));
                }
            });
        };
        accept(listener);
        let ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).map(accept).is_ok();
        thread::spawn(move || {
            let mut buffer = [0; 2000];
            while let Ok((count, from)) = datagrams.recv_from(&mut buffer) {
                let _ = datagrams.send_to(&buffer[..count], from);
            }
        });
        Ok((port, ipv6))
    }

    fn echo(mut stream: TcpStream) -> io::Result<()> {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes)?;
        stream.write_all(&bytes)
    }

    /// The program inside.
    fn program(case: &str, port: u16) -> io::Result<()> {
        match case {
            "both-ways" => {
                // Localhost, and the address of the emulated server: both are the host.
                let took = exchange((Ipv4Addr::LOCALHOST, port), BYTES)?;
                // Twice 0.8 s.
                require(took.as_secs_f64() >= 1.6, &format!("it took {took:?}"))
            }
            "refused" => {
                let started = Instant::now();
                let refused = TcpStream::connect((Ipv4Addr::new(10, 0, 0, 1), 1));
                let kind = refused.err().map(|error| error.kind());
                require(kind == Some(ErrorKind::ConnectionRefused), &format!("{kind:?}"))?;
                // A round trip on the first path.
                require(started.elapsed() >= Duration::from_millis(20), "too fast")
            }
            "many" => {
                let all: Vec<_> = (0..200)
                    .map(|_| thread::spawn(move || exchange((Ipv4Addr::LOCALHOST, port), 10_000)))
                    .collect();
                all.into_iter().try_for_each(|each| each.join().expect("no panic").map(|_| ()))
            }
            "udp" => {
                let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
                socket.set_read_timeout(Some(Duration::from_secs(5)))?;
                let (started, mut buffer) = (Instant::now(), [0; 9]);
                socket.send_to(b"question?", (Ipv4Addr::LOCALHOST, port))?;
                let (count, _) = socket.recv_from(&mut buffer)?;
                require(buffer[..count] == *b"question?", "other bytes")?;
                require(started.elapsed() >= Duration::from_millis(20), "too fast")
            }
            "own-loopback" => {
                // A port without service on the host belongs to the program's own loopback.
                let own = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                let address = own.local_addr()?;
                thread::spawn(move || own.accept().and_then(|(stream, _)| echo(stream)));
                exchange((Ipv4Addr::LOCALHOST, address.port()), 1000).map(|_| ())
            }
            "ipv6" => {
                let refused =
                    TcpStream::connect(("2001:db8::1", 1)).err().map(|error| error.kind());
                require(refused == Some(ErrorKind::ConnectionRefused), &format!("{refused:?}"))?;
                exchange(("2001:db8::1", port), 100_000).map(|_| ())
            }
            _ => {
                // The root of the host stays root, but of its own namespaces only.
                let status = std::fs::read_to_string("/proc/self/status")?;
                let none = status.contains("CapEff:\t0000000000000000");
                require(none || status.contains("Uid:\t0\t"), "privileges remain")
            }
        }
    }

    fn exchange(to: impl ToSocketAddrs, count: usize) -> io::Result<Duration> {
        let started = Instant::now();
        let mut stream = TcpStream::connect(to)?;
        let bytes: Vec<u8> = (0..count).map(|n| (n / 3) as u8).collect();
        stream.write_all(&bytes)?;
        stream.shutdown(Shutdown::Write)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        require(answer == bytes, "other bytes").map(|()| started.elapsed())
    }

    fn require(condition: bool, message: &str) -> io::Result<()> {
        if condition { Ok(()) } else { Err(io::Error::other(message)) }
    }
}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("shell skipped: it needs Linux");
}
