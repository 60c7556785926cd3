//! The command `anabranch-proxy`.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    // A user without privileges may not reach the folder of this file, but may execute it.
    let again = ["/proc/self/exe".to_owned()];
    let program = anabranch_proxy::Program { again: &again, to_qlog: None };
    ExitCode::from(anabranch_proxy::main(&arguments, program))
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("anabranch-proxy: it needs Linux");
    ExitCode::FAILURE
}
