//! Unprivileged network namespaces.

use std::env;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, ExitStatus, Output, Stdio};

use crate::sys::{self, Unshare};

/// Environment variable that marks the command inside the namespaces.
const INSIDE: &str = "ANABRANCH_LAB";

/// Returns `true` if this process runs where it may create network namespaces.
pub fn is_inside() -> bool {
    env::var_os(INSIDE).is_some()
}

/// Run a command in a new user namespace, where it is root over its own network namespaces only. If
/// that is forbidden and this process is already root, run the command in a new network namespace.
///
/// # Errors
/// If neither is allowed, or the command cannot be started.
pub fn enter(command: &[String]) -> io::Result<ExitStatus> {
    let start = |unshared| {
        let mut inside = Command::new(&command[0]);
        inside.args(&command[1..]).env(INSIDE, "1");
        sys::start_in_namespaces(&mut inside, unshared, true);
        inside.spawn()
    };
    start(Unshare::UserAndNetwork).or_else(|_| start(Unshare::Network))?.wait()
}

/// A network namespace.
#[derive(Debug)]
pub(crate) struct Namespace {
    file: File,
}

impl Namespace {
    /// The network namespace of this thread.
    fn current() -> io::Result<Self> {
        Ok(Namespace { file: File::open("/proc/thread-self/ns/net")? })
    }

    /// Create a namespace with its loopback interface up. This thread stays in its own namespace.
    pub(crate) fn new() -> io::Result<Self> {
        let here = Namespace::current()?;
        sys::unshare(Unshare::Network)?;
        let new = Namespace::current()?;
        sys::enter_network(here.file.as_fd())?;
        Ok(new)
    }

    /// Call a function inside the namespace.
    pub(crate) fn within<T>(&self, f: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let here = Namespace::current()?;
        sys::enter_network(self.file.as_fd())?;
        let done = f();
        sys::enter_network(here.file.as_fd())?;
        done
    }

    /// Move this thread into the namespace for good.
    pub(crate) fn stay(&self) -> io::Result<()> {
        sys::enter_network(self.file.as_fd())
    }

    /// A path to the namespace, for `ip`.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }
}

/// Execute commands with `ip` in this thread's network namespace. Commands that begin with `-6` run
/// last, because `ip` does not understand them among other commands.
pub(crate) fn ip(commands: &[String]) -> io::Result<()> {
    let of_ipv6 = commands.iter().filter_map(|command| command.strip_prefix("-6 "));
    let others = commands.iter().map(String::as_str).filter(|command| !command.starts_with("-6 "));
    batch(&["-batch", "-"], &others.collect::<Vec<_>>())?;
    batch(&["-6", "-batch", "-"], &of_ipv6.collect::<Vec<_>>())
}

fn batch(arguments: &[&str], commands: &[&str]) -> io::Result<()> {
    if commands.is_empty() {
        return Ok(());
    }
    let mut child = Command::new("ip")
        .args(arguments)
        .env("PATH", search_path())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("ip (iproute2): {error}")))?;
    let mut input = child.stdin.take().expect("it is piped");
    input.write_all((commands.join("\n") + "\n").as_bytes())?;
    drop(input);
    succeeded("ip", &child.wait_with_output()?)
}

/// Execute a shell command in this thread's network namespace.
pub(crate) fn shell(command: &str) -> io::Result<()> {
    let output = Command::new("sh").args(["-c", command]).env("PATH", search_path()).output()?;
    succeeded(command, &output)
}

fn succeeded(command: &str, output: &Output) -> io::Result<()> {
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(io::Error::other(format!("{command}: {said}")))
}

/// Search path for commands, including root's folders.
pub(crate) fn search_path() -> String {
    format!("{}:/usr/sbin:/sbin:/usr/bin:/bin", env::var("PATH").unwrap_or_default())
}

/// Set `/proc/sys/net/…` of this thread's network namespace.
pub(crate) fn set_sysctl(name: &str, value: &str) -> io::Result<()> {
    let file = format!("/proc/sys/net/{name}");
    std::fs::write(&file, value)
        .map_err(|error| io::Error::new(error.kind(), format!("{file}: {error}")))
}
