//! The proxy as users run it: programs, client, relay and destination in namespaces of their own,
//! with links of the emulator between them. A host that does not support this skips the test and
//! reports the reason.
//!
//! This test starts itself as the programs and as the links.

#[cfg(target_os = "linux")]
mod cases;
#[cfg(target_os = "linux")]
mod instances;
#[cfg(target_os = "linux")]
mod ipv6;
#[cfg(target_os = "linux")]
mod measurement;
#[cfg(target_os = "linux")]
mod operation;
#[cfg(target_os = "linux")]
mod programs;
#[cfg(target_os = "linux")]
mod replay;
#[cfg(target_os = "linux")]
mod rooms;
#[cfg(target_os = "linux")]
mod strangers;
#[cfg(target_os = "linux")]
mod tun;
#[cfg(target_os = "linux")]
mod unmodified;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(target_os = "linux")]
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("--wire") => wire::main(&arguments[2..]),
        Some("--serve") => programs::serve(&arguments[2..]),
        Some("--fetch") => programs::fetch(&arguments[2..]),
        Some("--record") => programs::record(&arguments[2..]),
        Some("--send") => programs::send(&arguments[2..]),
        Some("--hold") => programs::hold(&arguments[2..]),
        _ => cases::run_all(&arguments),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("namespaces skipped: it needs Linux");
}
