//! The command `anabranch-proxy`.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let this = match std::env::current_exe() {
        Ok(this) => this.to_string_lossy().into_owned(),
        Err(_) => arguments[0].clone(),
    };
    ExitCode::from(anabranch_proxy::main(&arguments, &[this]))
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("anabranch-proxy: it needs Linux");
    ExitCode::FAILURE
}
